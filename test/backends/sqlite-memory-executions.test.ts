import { executionConformance } from "../conformance/executions.ts";
import { sqliteMemory } from "./sqlite-memory.ts";

executionConformance(sqliteMemory);
