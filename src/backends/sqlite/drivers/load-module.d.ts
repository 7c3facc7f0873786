/** Loads `node:sqlite`, or the module at an absolute path. Never shows Node's remark on SQLite. */
export function loadModule(modulePath: string): unknown;
