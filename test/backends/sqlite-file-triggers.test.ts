import { triggerConformance } from "../conformance/triggers.ts";
import { sqliteFile } from "./sqlite-file.ts";

triggerConformance(sqliteFile);
