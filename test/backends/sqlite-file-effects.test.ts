import { effectConformance } from "../conformance/effects.ts";
import { sqliteFile } from "./sqlite-file.ts";

effectConformance(sqliteFile);
