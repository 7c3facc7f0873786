import module, { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { MessageChannel } from "node:worker_threads";

/** The hooks of newer versions of Node. */
interface SyncHooks {
  readonly registerHooks?: (hooks: {
    resolve(
      specifier: string,
      context: unknown,
      next: (specifier: string, context: unknown) => { readonly url: string },
    ): { readonly url: string };
  }) => unknown;
}

/**
 * Reports each user file that is loaded from now on. Skips Node's own modules
 * and installed packages.
 */
export function onImported(tell: (file: string) => void): void {
  const known = new Set<string>();
  const see = (url: string): void => {
    if (!url.startsWith("file:")) return;
    const file = fileURLToPath(url.replace(/[?#].*$/, ""));
    if (known.has(file) || file.includes(`${path.sep}node_modules${path.sep}`)) return;
    known.add(file);
    tell(file);
  };
  const { registerHooks } = module as SyncHooks;
  if (registerHooks !== undefined) {
    registerHooks({
      resolve(specifier, context, next) {
        const resolved = next(specifier, context);
        see(resolved.url);
        return resolved;
      },
    });
    return;
  }
  const { port1, port2 } = new MessageChannel();
  port1.on("message", see).unref();
  module.register(`data:text/javascript,${encodeURIComponent(hooks)}`, {
    data: { port: port2 },
    transferList: [port2],
  });
}

/** Files loaded by `require`, which the hooks of older versions of Node do not see. */
export function requiredFiles(): readonly string[] {
  const { cache } = createRequire(import.meta.url);
  return Object.keys(cache).filter(
    (file) => path.isAbsolute(file) && !file.includes(`${path.sep}node_modules${path.sep}`),
  );
}

/** Runs on a thread of Node's own, before version 22.15. */
const hooks = `
let port;
export function initialize(data) { port = data.port; }
export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context);
  port.postMessage(resolved.url);
  return resolved;
}`;
