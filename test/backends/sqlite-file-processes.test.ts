import { processConformance } from "../conformance/processes.ts";
import { sqliteFile } from "./sqlite-file.ts";

processConformance(sqliteFile);
