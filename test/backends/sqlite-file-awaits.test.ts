import { awaitConformance } from "../conformance/awaits.ts";
import { sqliteFile } from "./sqlite-file.ts";

awaitConformance(sqliteFile);
