import { givenInvalid } from "../model/shape.ts";
import { isRecord } from "../model/values/spoken-kind.ts";
import type { ActivityContext } from "../runtime/definition/activity-context.ts";
import { activityLike, definitionOf, type Activity } from "../runtime/definition/definitions.ts";

/** A call that a fake has answered. */
export interface FakeCall<out In> {
  readonly input: In;
  /** The id of this run of the activity, the same for all its attempts. */
  readonly id: string;
  /** Counts from 1. */
  readonly attempt: number;
}

/**
 * The answer of a fake to a call: runs a function, returns, throws, or hangs until its timeout.
 */
type FakeAnswer<In, Out> =
  | ((ctx: ActivityContext, input: In) => Promise<Out> | Out)
  | { readonly returns: Out }
  | { readonly throws: unknown }
  /** Ends only on a timeout or a cancellation. Time passes while it hangs. */
  | { readonly hangs: true };

/** Stands in for an activity and lists its calls. */
export interface Fake<In, Out> extends Activity<In, Out> {
  /** The attempts, in the order in which they started. */
  readonly calls: readonly FakeCall<In>[];
}

/** Called by a fake that hangs, with the key of the call. */
type Waits = (idempotencyKey: string) => void;

/** The listeners that move time while a fake hangs. */
type Movers = Set<Waits>;

const faked = new WeakMap<object, Movers>();

/**
 * Answers in place of an activity, under its name and with its options. Pass it to `testHoldfast`
 * among the functions, with or without the activity. Given several answers, each attempt uses the
 * next one, and the last one repeats.
 *
 * @throws HoldfastError `OPTION_INVALID`
 * @example
 * const charged = fake(charge, { throws: new Error("no answer") }, { returns: { receipt: "r-1" } });
 * await using holdfast = await testHoldfast([order, charged]);
 */
export function fake<In, Out>(
  activity: Activity<In, Out>,
  ...answers: readonly FakeAnswer<NoInfer<In>, NoInfer<Out>>[]
): Fake<In, Out> {
  const made = definitionOf(activity, "the activity to fake");
  if (made.kind !== "activity")
    throw givenInvalid("the activity to fake", "the result of activity()", activity);
  if (answers.length === 0) throw givenInvalid("an answer of the fake", expected, undefined);
  for (const answer of answers) givenAnswer(answer);
  const calls: FakeCall<In>[] = [];
  const movers: Movers = new Set();
  const body = async (ctx: ActivityContext, input: In): Promise<Out> => {
    const { id, attempt } = ctx;
    const answer = answers[Math.min(calls.length, answers.length - 1)];
    calls.push({ input, id, attempt });
    return answered(answer as FakeAnswer<In, Out>, ctx, input, movers);
  };
  const stand = activityLike(made, body as never, { calls }) as Fake<In, Out>;
  faked.set(stand, movers);
  return stand;
}

export function isFake(given: unknown): boolean {
  return isRecord(given) && faked.has(given);
}

/** Calls `waits` whenever the given fake hangs. Returns a function that stops it. */
export function onHanging(given: unknown, waits: Waits): () => void {
  const movers = isRecord(given) ? faked.get(given) : undefined;
  movers?.add(waits);
  return () => movers?.delete(waits);
}

async function answered<In, Out>(
  answer: FakeAnswer<In, Out>,
  ctx: ActivityContext,
  input: In,
  movers: Movers,
): Promise<Out> {
  if (typeof answer === "function") return answer(ctx, input);
  if ("returns" in answer) return answer.returns;
  if ("throws" in answer) throw answer.throws;
  for (const waits of movers) waits(ctx.idempotencyKey);
  const { abortSignal } = ctx;
  return new Promise((_, reject) => {
    const stop = (): void => reject(abortSignal.reason as Error);
    if (abortSignal.aborted) stop();
    else abortSignal.addEventListener("abort", stop, { once: true });
  });
}

const expected = "a function, { returns: value }, { throws: error } or { hangs: true }";

/** @throws HoldfastError `OPTION_INVALID` */
function givenAnswer(answer: unknown): void {
  if (typeof answer === "function") return;
  if (isRecord(answer)) {
    const [name, ...others] = Object.keys(answer);
    if (others.length === 0 && (name === "returns" || name === "throws")) return;
    if (others.length === 0 && name === "hangs" && answer[name] === true) return;
  }
  throw givenInvalid("an answer of the fake", expected, answer);
}
