import { pageConformance } from "../conformance/pages.ts";
import { sqliteFile } from "./sqlite-file.ts";

// What is judged before a database is asked is judged in memory already.
pageConformance(sqliteFile, { oneIn: 30 });
