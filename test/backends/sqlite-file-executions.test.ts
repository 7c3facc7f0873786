import { executionConformance } from "../conformance/executions.ts";
import { sqliteFile } from "./sqlite-file.ts";

executionConformance(sqliteFile);
