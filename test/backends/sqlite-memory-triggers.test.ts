import { triggerConformance } from "../conformance/triggers.ts";
import { sqliteMemory } from "./sqlite-memory.ts";

triggerConformance(sqliteMemory);
