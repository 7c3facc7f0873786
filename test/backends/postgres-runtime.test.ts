import { runtimeConformance } from "../conformance/runtime.ts";
import { postgresSchema } from "./postgres.ts";

runtimeConformance(postgresSchema);
