import { effectConformance } from "../conformance/effects.ts";
import { postgresSchema } from "./postgres.ts";

effectConformance(postgresSchema);
