import { kernelConformance } from "../conformance/kernel.ts";
import { sqliteFile } from "./sqlite-file.ts";

kernelConformance(sqliteFile);
