// Plain JavaScript, shared by the driver's loader, our threads and our processes.
import { createRequire } from "node:module";

/**
 * Loads the driver that the starting process found. Its path is absolute or it is built into Node,
 * so the place of the `require` does not matter. This code also runs from a text, which has no path
 * of its own.
 */
export function loadModule(modulePath) {
  const require = createRequire(process.execPath);
  return modulePath === "node:sqlite"
    ? withoutSqliteWarning(() => require(modulePath))
    : require(modulePath);
}

/**
 * Drops Node's remark that SQLite is experimental, which Node 22 makes when the module is
 * first loaded. Loading is synchronous, so nothing else runs while `emitWarning` is replaced. Every
 * other warning reaches the previous `emitWarning`, which may be the app's own.
 */
function withoutSqliteWarning(load) {
  const { emitWarning } = process;
  const previous = Object.getOwnPropertyDescriptor(process, "emitWarning");
  const filtered = function (...args) {
    if (!isSqliteWarning(...args)) Reflect.apply(emitWarning, this, args);
  };
  const replacement = { configurable: true, enumerable: true, writable: true, value: filtered };
  // An app that fixed the property sees the remark.
  if (!Reflect.defineProperty(process, "emitWarning", replacement)) return load();
  try {
    return load();
  } finally {
    if (previous === undefined) delete process.emitWarning;
    else Object.defineProperty(process, "emitWarning", previous);
  }
}

function isSqliteWarning(warning, type) {
  return (
    type === "ExperimentalWarning" &&
    String(warning).startsWith("SQLite is an experimental feature")
  );
}
