import { monotonicMs } from "../../host/timers.ts";
import type { Done, Tx } from "../../sql/operation.ts";
import type { Callable } from "../callable.ts";

/** The set form of an operation, for inputs of distinct keys. */
export type ManyForm = (inputs: readonly unknown[]) => Tx<readonly (Done<unknown> | undefined)[]>;

/** A read or write that waits for a connection, runs, and is then settled. */
export class Call {
  readonly body: Callable;
  readonly access: "read" | "write";
  /** Present when the call may run together with others. */
  readonly many: ManyForm | undefined;
  readonly input: unknown;
  /** What the input adds to a set. */
  readonly bytes: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** When it was made, on the monotonic clock. */
  readonly sinceMs: number = monotonicMs();
  /** Place in the order of submission; given by the queue. */
  order = 0;
  /** No call of the same key is ahead of it. */
  isReady = false;
  /** It waits until calls of its name that are run again have ended. */
  isHeld = false;
  /** A transaction has taken the call: it happens, whatever its caller does. */
  taken = false;
  /** The caller gave up before that. */
  withdrawn = false;
  /** Transactions that ran it without success, and since when (monotonic clock). */
  attempts = 0;
  /** Those of them that waited too long for a lock. */
  lockReruns = 0;
  /** It did so while no other call of its name ran. */
  isHeldUpElsewhere = false;
  firstTakenMs: number | undefined;
  /** Set while the caller may still give up. */
  stopWaiting: (() => void) | undefined;

  constructor(
    body: Callable,
    access: "read" | "write",
    many: ManyForm | undefined,
    input: unknown,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.body = body;
    this.access = access;
    this.many = many;
    this.input = input;
    this.bytes = many === undefined ? 0 : inputBytes(input);
    this.resolve = resolve;
    this.reject = reject;
  }

  /** The aggregate whose calls keep their order; reads and unnamed bodies have none. */
  get key(): string | undefined {
    return this.access === "write" ? this.body.change?.key : undefined;
  }
}

/** How deep texts of any size lie in an input: a payload is in an event, which is in a list. */
const depthMax = 4;

/** Roughly how much an input adds to a set: the texts and bytes in it. */
function inputBytes(input: unknown, depth = 0): number {
  if (typeof input === "string") return input.length;
  if (typeof input !== "object" || input === null) return 0;
  if (input instanceof Uint8Array) return input.byteLength;
  if (depth === depthMax) return 0;
  let bytes = 0;
  for (const value of Object.values(input)) bytes += inputBytes(value, depth + 1);
  return bytes;
}
