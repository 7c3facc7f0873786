import { triggerConformance } from "../conformance/triggers.ts";
import { postgresSchema } from "./postgres.ts";

triggerConformance(postgresSchema);
