import { writeFileSync } from "node:fs";
import path from "node:path";
import { projectRoot } from "./project.ts";
import { renderThreads, threadsFile } from "./render-threads.ts";

/** Embeds the entries of threads and processes, so that the package looks for no files at run time. */
writeFileSync(path.join(projectRoot, threadsFile), renderThreads(projectRoot));
console.log(`Embedded the threads in ${threadsFile}.`);
