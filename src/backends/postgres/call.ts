import { monotonicMs } from "../../host/timers.ts";
import type { ManyForm as ManyFormOf } from "../../sql/lone-statement.ts";
import type { Callable } from "../callable.ts";

/** The set form of an operation, for inputs of distinct keys. */
export type ManyForm = ManyFormOf<unknown, unknown>;

/** A read or write that waits for a connection, runs, and is then settled. */
export class Call {
  readonly body: Callable;
  readonly access: "read" | "write";
  /** Present when the call may run together with others. */
  readonly many: ManyForm | undefined;
  readonly input: unknown;
  /** The size that the input adds to a set. */
  readonly bytes: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** The time of its creation, on the monotonic clock. */
  readonly sinceMs: number = monotonicMs();
  /** Its position in the order of submission, assigned by the queue. */
  order = 0;
  /** True when no call of the same key is ahead of it. */
  isReady = false;
  /** True while it waits for reruns of its name to end. */
  isHeld = false;
  /** True once a transaction has taken the call: it happens, even if its caller gives up. */
  taken = false;
  /** True when the caller gave up before that. */
  withdrawn = false;
  /**
   * Transactions that ran it without success; `firstTakenMs` is the start of the first, on the
   * monotonic clock.
   */
  attempts = 0;
  /** Attempts among them that waited too long for a lock. */
  lockReruns = 0;
  /** True when it waited too long for a lock while no other call of its name ran. */
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

  /** The aggregate whose calls keep their order; undefined for reads and unnamed bodies. */
  get key(): string | undefined {
    return this.access === "write" ? this.body.change?.key : undefined;
  }
}

/** The depth at which large texts lie in an input: a payload is in an event, which is in a list. */
const depthMax = 4;

/** The approximate size that an input adds to a set: its texts and bytes. */
function inputBytes(input: unknown, depth = 0): number {
  if (typeof input === "string") return input.length;
  if (typeof input !== "object" || input === null) return 0;
  if (input instanceof Uint8Array) return input.byteLength;
  if (depth === depthMax) return 0;
  let bytes = 0;
  for (const value of Object.values(input)) bytes += inputBytes(value, depth + 1);
  return bytes;
}
