import { runtimeConformance } from "../conformance/runtime.ts";
import { sqliteMemory } from "./sqlite-memory.ts";

runtimeConformance(sqliteMemory);
