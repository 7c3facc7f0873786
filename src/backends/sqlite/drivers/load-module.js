// Plain JavaScript, shared by our threads and processes.
import { createRequire } from "node:module";

/**
 * Loads the driver that the starting process has found: its path is whole, or it
 * is built into Node, so it does not matter from where we ask. We are a text
 * and have no place of our own.
 */
export const loadModule = createRequire(process.execPath);
