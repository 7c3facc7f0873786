import { sessionConformance } from "../conformance/sessions.ts";
import { postgresSchema } from "./postgres.ts";

sessionConformance(postgresSchema);
