import { HoldfastError } from "../../model/errors.ts";
import type { RuntimeEvent } from "../../runtime/runtime-event.ts";
import type { CliContext } from "../context.ts";
import { loadModule } from "../modules/load-module.ts";
import { functionsOf, type ModuleFunctions } from "../modules/functions-of.ts";
import { onImported, requiredFiles } from "../modules/imported-files.ts";
import { loadFailureText } from "../modules/load-failure.ts";
import { untilAbandoned } from "../process/own-process.ts";
import { jsonText } from "../text/json.ts";
import { oneLine } from "../text/style.ts";
import { untilStopped } from "../process/until-stopped.ts";

/** A message of the worker process of `holdfast dev` to its parent process. */
export type DevTold =
  | { readonly kind: "imported"; readonly files: readonly string[] }
  | {
      readonly kind: "ready";
      readonly functions: readonly string[];
      /** The workflows among them. */
      readonly workflows: readonly string[];
    }
  | { readonly kind: "failed"; readonly text: string };

const closeTimeout = "5s";

/** Runs the functions of a module until it is told to stop, or its parent process has ended. */
export async function runDevWorker(context: CliContext, file: string): Promise<void> {
  if (process.send === undefined)
    throw new HoldfastError(
      "OPTION_INVALID",
      "`npx holdfast dev` starts this command. Run that instead.",
      {
        option: "dev-worker",
      },
    );
  const tell = (told: DevTold): void => {
    if (process.connected) process.send?.(told);
  };
  const found = await loaded(context, file, tell);
  if (found === undefined) return;
  const { functions, all } = found;
  const holdfast = await context.openForWork((event) => {
    if (event.level !== "debug") context.print(oneLine(lineOf(event)));
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
    // For example two functions of one name: a mistake in the module.
    tell({ kind: "failed", text: (error as Error).message });
  } finally {
    await holdfast.close({ timeout: closeTimeout });
    // The listener keeps the channel open, and the channel keeps this process alive.
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

/** A message of a run or the runtime as a line for a terminal. */
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
    return ""; // For example a cycle.
  }
}
