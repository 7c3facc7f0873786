// Plain JavaScript, shared by our threads and processes.
import { createRequire } from "node:module";

/**
 * Loads the driver that the starting process found. Its path is absolute or it is built into Node,
 * so the place of the `require` does not matter. This code runs from a text, which has no path of
 * its own.
 */
export const loadModule = createRequire(process.execPath);
