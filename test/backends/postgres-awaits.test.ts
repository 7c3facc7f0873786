import { awaitConformance } from "../conformance/awaits.ts";
import { postgresSchema } from "./postgres.ts";

awaitConformance(postgresSchema);
