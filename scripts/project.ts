import path from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of package.json, so that scripts work from any folder. */
export const projectRoot: string = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
