import { statSync, watch, type FSWatcher } from "node:fs";
import path from "node:path";
import { after } from "../../host/timers.ts";

/** Editors write a file in several steps, and people several files. */
const quietMs = 100;

/**
 * Watches files for changes. It is their folders that are watched: many
 * editors put a new file in the place of the old one, and a file that is
 * missing can still come.
 */
export class WatchedFiles {
  readonly #onChange: (file: string) => void;
  readonly #signatures = new Map<string, string>();
  readonly #folders = new Map<string, FSWatcher>();
  #cancel: () => void = () => undefined;
  #isEveryModule = false;

  /** Told one of the files that changed, once they rest. */
  constructor(onChange: (file: string) => void) {
    this.#onChange = onChange;
  }

  add(file: string): void {
    if (this.#signatures.has(file)) return;
    this.#signatures.set(file, signatureOf(file));
    const folder = path.dirname(file);
    if (this.#folders.has(folder)) return;
    try {
      const watcher = watch(folder, { persistent: false }, (_, name) => this.#heard(folder, name));
      watcher.on("error", () => this.#forget(folder));
      this.#folders.set(folder, watcher);
    } catch {
      // A folder that is gone: the files in it are, too.
    }
  }

  /** Whether any module beside them counts: what a broken one lacks may be a file that is not there. */
  watchAllModules(isEveryModule: boolean): void {
    this.#isEveryModule = isEveryModule;
  }

  close(): void {
    this.#cancel();
    for (const folder of this.#folders.keys()) this.#forget(folder);
  }

  #forget(folder: string): void {
    this.#folders.get(folder)?.close();
    this.#folders.delete(folder);
  }

  #heard(folder: string, name: string | null): void {
    const files = name === null ? [...this.#signatures.keys()] : [path.join(folder, name)];
    const changed = files.find((file) => this.#isChanged(file));
    if (changed === undefined) return;
    this.#cancel();
    this.#cancel = after(quietMs, () => this.#onChange(changed));
  }

  #isChanged(file: string): boolean {
    const known = this.#signatures.get(file);
    if (known === undefined) return this.#isEveryModule && /\.([cm]?[jt]sx?|json)$/.test(file);
    const signature = signatureOf(file);
    if (signature === known) return false;
    this.#signatures.set(file, signature);
    return true;
  }
}

/** Changes when the file does; reading it does not change it. */
function signatureOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? "missing" : `${found.mtimeMs} ${found.size} ${found.ino}`;
}
