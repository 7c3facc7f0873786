import { effectConformance } from "../conformance/effects.ts";
import { sqliteMemory } from "./sqlite-memory.ts";

effectConformance(sqliteMemory);
