import { executionConformance } from "../conformance/executions.ts";
import { postgresSchema } from "./postgres.ts";

executionConformance(postgresSchema);
