import { kernelConformance } from "../conformance/kernel.ts";
import { sqliteMemory } from "./sqlite-memory.ts";

kernelConformance(sqliteMemory);
