import { sessionConformance } from "../conformance/sessions.ts";
import { sqliteFile } from "./sqlite-file.ts";

sessionConformance(sqliteFile);
