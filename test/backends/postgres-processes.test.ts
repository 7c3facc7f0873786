import { processConformance } from "../conformance/processes.ts";
import { postgresSchema } from "./postgres.ts";

processConformance(postgresSchema);
