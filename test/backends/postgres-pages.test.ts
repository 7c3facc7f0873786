import { pageConformance } from "../conformance/pages.ts";
import { postgresSchema } from "./postgres.ts";

pageConformance(postgresSchema);
