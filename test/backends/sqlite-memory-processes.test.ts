import { processConformance } from "../conformance/processes.ts";
import { sqliteMemory } from "./sqlite-memory.ts";

processConformance(sqliteMemory);
