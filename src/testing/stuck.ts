import { askedIn } from "../model/execution/question.ts";
import { excerpt } from "../model/values/excerpt.ts";
import { HoldfastError } from "../model/errors.ts";
import type { Interruption } from "../model/execution/interruption.ts";
import type { ExecutionId } from "../model/ids/execution-id.ts";
import type { Definition } from "../runtime/definition/definitions.ts";
import { replayLog } from "../runtime/history/replay-log.ts";
import type { RunState } from "../runtime/run/run-state.ts";
import type { RuntimeContext } from "../runtime/runtime-context.ts";
import { loadedWhole } from "../runtime/worker/hot/history.ts";

/** Limits of the message: levels of children, and children per level. */
const depthMax = 3;
const childrenMax = 5;

/** Builds the error for a run whose awaited event can never come. */
export async function whyStuck(
  context: RuntimeContext,
  functions: ReadonlyMap<string, Definition>,
  id: string,
): Promise<HoldfastError> {
  const { executions } = context.pages;
  const { function: name, status, interruption } = await executions.get(id);
  const waitsFor = await waitsOf(context, functions, id, depthMax);
  return new HoldfastError(
    "RUN_STUCK",
    `Run ${id} of ${name} cannot end by itself: nothing runs, and nothing waits for a time. It ${ended(waitsFor.join(", and "))}${adviceFor(interruption?.kind)}`,
    { id, function: name, status, waitsFor },
  );
}

/** Ends the text with a full stop. A parked run's reason is a whole sentence already. */
function ended(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}

/** The advice for the caller. A parked run's reason already includes advice. */
function adviceFor(interruption: Interruption["kind"] | undefined): string {
  switch (interruption) {
    case "parked":
      return "";
    case "paused":
      return " Resume it before you await its result.";
    default:
      return " Send what it waits for before you await its result, or await both together.";
  }
}

/** Builds the error for a run that the passing of time does not end. */
export function endless(id: string, instants: number, now: number): HoldfastError {
  return new HoldfastError(
    "RUN_STUCK",
    `Run ${id} has not ended by ${new Date(now).toISOString()}, after ${instants} instants that it waited for, and it may never end. ` +
      "Cancel it, or send the signal that ends it, before you await its result. Or move time with skip, and check its progress.",
    { id, instants, now },
  );
}

/** True when an instant will wake the run or one of its descendants. */
export async function waitsForTime(
  { pages: { executions } }: RuntimeContext,
  id: string,
): Promise<boolean> {
  let after: string | undefined;
  do {
    const page = await executions.tree(id, after === undefined ? {} : { after });
    for (const { sleepsUntil, deadlineAt, state } of page.items)
      if (state.pending.kind !== "finished" && (sleepsUntil ?? deadlineAt) !== null) return true;
    after = page.next;
  } while (after !== undefined);
  return false;
}

async function waitsOf(
  context: RuntimeContext,
  functions: ReadonlyMap<string, Definition>,
  id: string,
  depth: number,
): Promise<readonly string[]> {
  const { executions } = context.pages;
  const view = await executions.get(id);
  const { status, interruption, role, function: name } = view;
  if (interruption?.kind === "parked") return [`is parked: ${interruption.reason}`];
  if (status === "paused") return ["is paused"];
  if (role === "external") return [await questionWait(context, id, name)];
  const definition = functions.get(name);
  if (definition === undefined)
    return [`waits for a worker: "${name}" was not given to testHoldfast([…])`];
  if (role === "activity") return [`is ${status}`];
  const open = await openIn(context, definition, id);
  if (open === undefined) return [`is ${status}`];
  const children = await Promise.all(
    open.children
      .slice(0, childrenMax)
      .map((child) => childWaits(context, functions, child, depth - 1)),
  );
  const all = [...open.signals.map((each) => `waits for signal "${each}"`), ...children];
  return all.length > 0
    ? all
    : ["waits for something outside ctx, such as a promise that ctx did not return"];
}

async function questionWait(
  { pages: { executions } }: RuntimeContext,
  id: string,
  name: string,
): Promise<string> {
  const { about } = askedIn(name, (await executions.created(id)).input);
  const said = typeof about === "string" ? `, ${excerpt(about)},` : "";
  return `waits for an answer to question ${id}${said} by questions.answer() or its token`;
}

async function childWaits(
  context: RuntimeContext,
  functions: ReadonlyMap<string, Definition>,
  child: ExecutionId,
  depth: number,
): Promise<string> {
  const { role, function: name } = await context.pages.executions.get(child);
  const inside = depth > 0 ? await waitsOf(context, functions, child, depth) : [];
  if (role === "external") return inside.join("");
  const said = inside.length > 0 ? `, which ${inside.join(", and ")}` : "";
  return `waits for its child ${child} of ${name}${said}`;
}

interface Open {
  readonly signals: readonly string[];
  readonly children: readonly ExecutionId[];
}

/**
 * Calls that the run's code has made and that have no answer yet. Found by replaying its code
 * against its log.
 */
async function openIn(
  context: RuntimeContext,
  definition: Definition,
  id: string,
): Promise<Open | undefined> {
  const { executions } = context.pages;
  const locked = await loadedWhole(context, await executions.load(id));
  let open: Open | undefined;
  const look = ({ mailbox, children }: RunState): void => {
    open = {
      signals: mailbox.receivers.map(({ signal }) => signal),
      children: [...children.keys()],
    };
  };
  await replayLog(context, definition, locked, null, look);
  return open;
}
