import { sessionConformance } from "../conformance/sessions.ts";
import { sqliteMemory } from "./sqlite-memory.ts";

sessionConformance(sqliteMemory);
