import { writeFileSync } from "node:fs";
import path from "node:path";
import { growthTable, partFigures, renderGrowth } from "../test/tidy/growth.ts";
import { readTree } from "../test/tidy/tree.ts";
import { projectRoot } from "./project.ts";

/** `npm run growth`: writes the figures that test/tidy compares each part of src with. */
const table = renderGrowth(partFigures(readTree()));
writeFileSync(path.join(projectRoot, growthTable), table);
console.log(table);
