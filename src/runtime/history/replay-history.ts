import { systemEntropy } from "../../host/entropy.ts";
import { sha256Hex } from "../../host/hash.ts";
import { manualClock } from "../../model/time/clock.ts";
import { checkedText, givenInvalid, optionsOf } from "../../model/shape.ts";
import type { PayloadCodec } from "../../model/values/payload-codec.ts";
import type { Database } from "../../sql/database.ts";
import { executionContext } from "../../stores/execution/context.ts";
import { definitionOf, type Workflow } from "../definition/definitions.ts";
import { Drain } from "../drain.ts";
import { RunningBodies } from "../running-bodies.ts";
import { replayLog, type ReplayContext, type ReplayOutcome } from "./replay-log.ts";
import { historyInvalid, readHistory } from "./read-history.ts";
import type { RunHistory } from "./run-history.ts";

interface ReplayOptions {
  /** The payload codec of the source database, if inputs are hashed with its key. */
  readonly payload?: PayloadCodec;
  /** The code version that the error shows beside the recorded one. */
  readonly codeVersion?: string;
}

/**
 * Replays a run's history against the code of a workflow, without running a step or writing
 * anything. It tells if changed code is safe for runs with such a history. `matches`: the code
 * did all that was recorded and would continue. `ends`: the code also ended. `differs`: an
 * error shows the recorded and the actual call.
 *
 * @throws HoldfastError `HISTORY_INVALID` for an invalid history, one of a newer format or of another function, `OPTION_INVALID`
 * @example
 * const history = JSON.parse(await readFile("test/order-42.json", "utf8"));
 * expect(await replayHistory(fulfil, history)).toEqual({ kind: "matches" });
 */
export async function replayHistory(
  workflow: Workflow<never, unknown>,
  history: RunHistory,
  options?: ReplayOptions,
): Promise<ReplayOutcome> {
  const definition = definitionOf(workflow, "the workflow to replay");
  if (definition.kind !== "workflow")
    throw givenInvalid("the workflow to replay", "the result of workflow()", workflow);
  const { payload, codeVersion } = optionsOf<ReplayOptions>(options, ["payload", "codeVersion"]);
  if (codeVersion !== undefined) checkedText("A code version", codeVersion);
  const context = contextOf(payload);
  const loaded = readHistory(history, context.store.values);
  if (loaded.function !== definition.name)
    throw historyInvalid(
      "function",
      `This is the history of a run of "${loaded.function}", but the workflow is "${definition.name}". Pass the workflow with the name of the history.`,
      { function: loaded.function },
    );
  const recordedWith = history.payload;
  if (recordedWith !== (payload?.name ?? null))
    throw historyInvalid(
      "payload",
      recordedWith === null
        ? "This history was recorded without a payload codec. Leave out payload."
        : `Inputs of this run were hashed by the payload codec "${recordedWith}". Pass it as { payload }.`,
      { payload: recordedWith },
    );
  return replayLog(context, definition, loaded, codeVersion ?? null);
}

/** The context that a replay needs, without a database. */
function contextOf(payload: PayloadCodec | undefined): ReplayContext {
  const clock = manualClock();
  const refuse = (): never => {
    throw new Error("A replay has no database.");
  };
  const database: Pick<Database, "clock" | "entropy" | "sha256Hex" | "write" | "read"> = {
    clock,
    entropy: systemEntropy,
    sha256Hex,
    write: refuse,
    read: refuse,
  };
  // A history holds its values in the clear; only hashes need the codec's key.
  const store = executionContext(database as Database, {
    ...(payload !== undefined && {
      payload: {
        name: payload.name,
        hash: payload.hash,
        encode: (text) => text,
        decode: (text) => text,
      },
    }),
  });
  return {
    clock,
    drain: new Drain(),
    bodies: new RunningBodies(),
    store,
    tokens: undefined,
  };
}
