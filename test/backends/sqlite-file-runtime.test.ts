import { runtimeConformance } from "../conformance/runtime.ts";
import { sqliteFile } from "./sqlite-file.ts";

runtimeConformance(sqliteFile);
