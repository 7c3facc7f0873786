import { spokenError } from "../../model/values/stored-error.ts";
import { where } from "../run/step-context.ts";
import type { Notice } from "../runtime-event.ts";

/**
 * Handles promises that the code of a run left behind. A branch without an await yet (`const b
 * = branch(ctx); await ctx.sleep("1h"); await b`) may reject while the run waits. Node then
 * ends the process, with all its other runs. So while a worker runs, a rejection inside a run
 * is reported and goes no further: code that awaits the promise later still gets it. Any other
 * rejection ends the process as it would without this package.
 */
const tellers = new Set<(notice: Notice) => void>();

/** On the listener of each copy of this package in the process: tells if a rejection is of a run of that copy. */
const isOfRun: unique symbol = Symbol.for("holdfast.isRejectionOfRun");
const isInside = (): boolean => where.getStore() !== undefined;
const listener = Object.assign(onRejection, { [isOfRun]: isInside });

/** Reported promises of runs. A later await of one is not reported. */
const toldOf = new WeakSet<object>();
const isToldOf = (promise: object): boolean => toldOf.has(promise);
const lateListener = Object.assign(onLateAwait, { [isOfRun]: isToldOf });

/** Watches rejections. Returns a function that stops it. */
export function watchRejections(tell: (notice: Notice) => void): () => void {
  if (tellers.size === 0) {
    process.on("unhandledRejection", listener);
    process.on("rejectionHandled", lateListener);
  }
  tellers.add(tell);
  return () => {
    tellers.delete(tell);
    if (tellers.size > 0) return;
    process.off("unhandledRejection", listener);
    process.off("rejectionHandled", lateListener);
  };
}

function onRejection(reason: unknown, promise: Promise<unknown>): void {
  const inside = where.getStore();
  if (inside === undefined) return leaveToNode(reason, promise);
  toldOf.add(promise);
  const { id, step } = inside;
  const place = step === undefined ? "" : `, step "${step}"`;
  for (const tell of tellers)
    tell({
      level: "warn",
      message: `In run ${id}${place} a promise that no code awaits was rejected: ${spokenError(reason)}`,
      details: { id, ...(step !== undefined && { step }) },
    });
}

/** Node warns of a reported promise that is awaited late, unless a listener exists. */
function onLateAwait(promise: Promise<unknown>): void {
  if (!isLeftToUs(process.listeners("rejectionHandled"), lateListener, promise)) return;
  process.emitWarning("Promise rejection was handled asynchronously", {
    type: "PromiseRejectionHandledWarning",
  });
}

/** True if another listener decides. Without other listeners the first copy of this package acts as Node does. */
function isLeftToUs(
  all: readonly object[],
  ours: typeof listener | typeof lateListener,
  promise: Promise<unknown>,
): boolean {
  const copies = all.filter((one): one is typeof lateListener => isOfRun in one);
  const isDecided = copies.length < all.length || copies.some((copy) => copy[isOfRun](promise));
  return !isDecided && copies[0] === ours;
}

function leaveToNode(reason: unknown, promise: Promise<unknown>): void {
  if (!isLeftToUs(process.listeners("unhandledRejection"), listener, promise)) return;
  switch (rejectionMode()) {
    case "none":
    case "warn": // Node has warned by itself,
    case "strict": // or thrown it.
      return;
    case "warn-with-error-codes":
      process.exitCode = 1;
      process.emitWarning(spokenError(reason), "UnhandledPromiseRejectionWarning");
      return;
    default:
      throw reason;
  }
}

/** The mode for rejections that Node got by its command line or else by its environment. */
function rejectionMode(): string | undefined {
  const given = `${process.env["NODE_OPTIONS"] ?? ""} ${process.execArgv.join(" ")}`;
  const said = given.matchAll(/--unhandled[-_]rejections[= ](\S+)/g);
  return [...said].at(-1)?.[1];
}
