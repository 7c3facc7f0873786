import { pageConformance } from "../conformance/pages.ts";
import { sqliteMemory } from "./sqlite-memory.ts";

pageConformance(sqliteMemory);
