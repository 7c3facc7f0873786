import { HoldfastError } from "../../model/errors.ts";
import type { RuntimeEvent } from "../../runtime/runtime-event.ts";
import type { CliContext } from "../context.ts";
import { loadModule } from "../modules/load-module.ts";
import { functionsOf, type ModuleFunctions } from "../modules/functions-of.ts";
import { onImported, requiredFiles } from "../modules/imported-files.ts";
import { loadFailureText } from "../modules/load-failure.ts";
import { untilAbandoned } from "../process/own-process.ts";
import { jsonText } from "../text/json.ts";
import { untilStopped } from "../process/until-stopped.ts";

/** What the worker process of `holdfast dev` tells the process that started it. */
export type DevTold =
  | { readonly kind: "imported"; readonly files: readonly string[] }
  | {
      readonly kind: "ready";
      readonly functions: readonly string[];
      /** Those of them that one would start. */
      readonly workflows: readonly string[];
    }
  | { readonly kind: "failed"; readonly text: string };

const closeTimeout = "5s";

/** Works on the functions of a module until it is told to stop, or the process that started it is gone. */
export async function runDevWorker(context: CliContext, file: string): Promise<void> {
  if (process.send === undefined)
    throw new HoldfastError("OPTION_INVALID", "This is started by `holdfast dev`: run that.", {
      option: "dev-worker",
    });
  const tell = (told: DevTold): void => {
    if (process.connected) process.send?.(told);
  };
  const found = await loaded(context, file, tell);
  if (found === undefined) return;
  const { functions, all } = found;
  const holdfast = await context.openForWork((event) => {
    if (event.level !== "debug") context.print(lineOf(event));
  });
  const namesOf = (given: ModuleFunctions["functions"]): readonly string[] =>
    given.map(({ name }) => name);
  try {
    await holdfast.work(all);
    tell({
      kind: "ready",
      functions: namesOf(functions),
      workflows: namesOf(functions.filter(({ kind }) => kind === "workflow")),
    });
    await Promise.race([untilStopped(context.stop), untilAbandoned()]);
  } catch (error) {
    // Two functions of one name, say: a mistake in the module like any other.
    tell({ kind: "failed", text: (error as Error).message });
  } finally {
    await holdfast.close({ timeout: closeTimeout });
    // Listening for its end keeps the channel, and the channel this process.
    if (process.connected) process.disconnect();
  }
}

async function loaded(
  { host }: CliContext,
  file: string,
  tell: (told: DevTold) => void,
): Promise<ModuleFunctions | undefined> {
  const files: string[] = [];
  onImported((imported) => {
    files.push(imported);
    tell({ kind: "imported", files: [imported] });
  });
  try {
    return functionsOf(await loadModule(file, host.cwd), file);
  } catch (error) {
    tell({ kind: "failed", text: loadFailureText(error, files) });
    return undefined;
  } finally {
    tell({ kind: "imported", files: requiredFiles() });
  }
}

/** What runs and the runtime say, for a person at a terminal. */
function lineOf({ level, message, details, data }: RuntimeEvent): string {
  const { id } = details;
  const of = typeof id === "string" ? ` ${id}` : "";
  const beside = data === undefined ? "" : ` ${inOneLine(data)}`;
  return `${level}${of}: ${message}${beside}`;
}

function inOneLine(data: unknown): string {
  try {
    return jsonText(data);
  } catch {
    return ""; // A circle, say.
  }
}
