import { statSync, watch, type FSWatcher } from "node:fs";
import path from "node:path";
import { after } from "../../host/timers.ts";

/** The quiet time before a change counts, since editors write a file in several steps. */
const quietMs = 100;

/**
 * Watches files for changes, by watching their folders: many editors replace
 * a file with a new one, and a missing file can still appear.
 */
export class WatchedFiles {
  readonly #onChange: (file: string) => void;
  readonly #signatures = new Map<string, string>();
  readonly #folders = new Map<string, FSWatcher>();
  #cancel: () => void = () => undefined;
  #isEveryModule = false;

  /** Called with one of the changed files, once no more changes come. */
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
      // A removed folder takes its files along.
    }
  }

  /** True if any module beside them counts, since a broken module may need a missing file. */
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

/** A mark that changes with the file, but not when the file is read. */
function signatureOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? "missing" : `${found.mtimeMs} ${found.size} ${found.ino}`;
}
