import { spokenError } from "../../model/values/stored-error.ts";
import { where } from "../run/step-context.ts";
import type { Notice } from "../runtime-event.ts";

/**
 * Promises that the code of a run left behind. A branch that nobody awaits yet
 * (`const b = branch(ctx); await ctx.sleep("1h"); await b`) may reject while
 * the run waits; Node ends the process for that, with all its other runs. So
 * while a worker runs, what was rejected inside a run is told of and goes no
 * further: whoever awaits it later still gets it. Everything else is none of
 * ours, and ends the process as it would without us.
 */
const tellers = new Set<(notice: Notice) => void>();

/** On the listener of each copy of this package in the process: whether a rejection is of a run of that copy. */
const isOfRun: unique symbol = Symbol.for("holdfast.isRejectionOfRun");
const isInside = (): boolean => where.getStore() !== undefined;
const listener = Object.assign(onRejection, { [isOfRun]: isInside });

/** Returns the way to stop. */
export function watchRejections(tell: (notice: Notice) => void): () => void {
  if (tellers.size === 0) process.on("unhandledRejection", listener);
  tellers.add(tell);
  return () => {
    tellers.delete(tell);
    if (tellers.size === 0) process.off("unhandledRejection", listener);
  };
}

function onRejection(reason: unknown): void {
  const inside = where.getStore();
  if (inside === undefined) return leaveToNode(reason);
  const { id, step } = inside;
  const place = step === undefined ? "" : `, step "${step}"`;
  for (const tell of tellers)
    tell({
      level: "warn",
      message: `In run ${id}${place} a promise was rejected that nobody awaits: ${spokenError(reason)}`,
      details: { id, ...(step !== undefined && { step }) },
    });
}

/** Another listener decides, if there is one; without any we do what Node does. */
function leaveToNode(reason: unknown): void {
  const all: readonly object[] = process.listeners("unhandledRejection");
  const copies = all.filter((one): one is typeof listener => isOfRun in one);
  const isDecided = copies.length < all.length || copies.some((copy) => copy[isOfRun]());
  if (isDecided || copies[0] !== listener) return;
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

/** What Node was told to do with rejections, by its command line or else by its environment. */
function rejectionMode(): string | undefined {
  const given = `${process.env["NODE_OPTIONS"] ?? ""} ${process.execArgv.join(" ")}`;
  const said = given.matchAll(/--unhandled[-_]rejections[= ](\S+)/g);
  return [...said].at(-1)?.[1];
}
