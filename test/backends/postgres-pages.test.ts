import { pageConformance } from "../conformance/pages.ts";
import { postgresSchema } from "./postgres.ts";

// What is judged before a database is asked is judged in memory already.
pageConformance(postgresSchema, { oneIn: 20 });
