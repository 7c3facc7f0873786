import { awaitConformance } from "../conformance/awaits.ts";
import { sqliteMemory } from "./sqlite-memory.ts";

awaitConformance(sqliteMemory);
