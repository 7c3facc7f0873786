import { kernelConformance } from "../conformance/kernel.ts";
import { postgresSchema } from "./postgres.ts";

kernelConformance(postgresSchema);
