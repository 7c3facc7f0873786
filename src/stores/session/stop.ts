import { isHoldfastError } from "../../model/errors.ts";
import { parseExecutionId, type ExecutionId } from "../../model/ids/execution-id.ts";
import { checkedText } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { rollbackWith, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { ownSignal } from "../execution/parts.ts";
import { optionsAndWait } from "../method.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { livingSession, lockedSession, type SessionRef } from "../session-row.ts";
import type { SessionContext } from "./context.ts";

export interface StopOptions extends WaitOptions {
  /** Only this turn: the id of its run. Defaults to the open one. */
  readonly turn?: string;
  /** A text for the code of the turn. */
  readonly reason?: string;
}

/**
 * The outcome of a stop. `stopping`: the turn is open and marked, so its commit can see the mark.
 * `tooLate`: the named turn is not open. `idle`: no turn is open.
 */
export type StopOutcome = "stopping" | "tooLate" | "idle";

/** The signal by which the code of a turn learns that it is to stop. */
const stopSignal = "holdfast/stop";

interface StopTurn {
  readonly session: SessionRef;
  readonly turn: ExecutionId;
  /** Sends the signal. */
  readonly signal: () => Tx<unknown>;
}

/**
 * Asks the open turn of a session to stop. The run is locked before the session, so the turn is
 * looked up first, and looked up again when another one is open by then.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `NAME_INVALID`, `ID_MALFORMED`
 */
export async function stopOpenTurn(
  context: SessionContext,
  signalRun: ReturnType<typeof ownSignal>,
  session: SessionName,
  given: StopOptions | undefined,
): Promise<StopOutcome> {
  const { options, wait } = optionsAndWait(given, ["turn", "reason"]);
  const { turn: named, reason } = options;
  const ref = sessionNamed(session);
  const only = named === undefined ? undefined : parseExecutionId(named);
  const value = reason === undefined ? null : checkedText("A reason", reason, 4_096);
  const openTurnNow = (): Promise<ExecutionId | null> =>
    context.database.read(openTurnOf(context), ref, wait);
  for (let before: ExecutionId | undefined; ;) {
    const turn = await openTurnNow();
    if (only !== undefined && turn !== only) return "tooLate";
    if (turn === null) return "idle";
    const signal = signalRun.prepare(turn, stopSignal, value, { key: "stop" });
    try {
      const input = { session: ref, turn, signal };
      if (await context.database.write(stopTurn(context), input, wait)) return "stopping";
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      if (error.code === "SIGNAL_CONFLICT") {
        // It was asked before, and the first reason stays. Its run may have given the turn up since.
        if ((await openTurnNow()) === turn) return "stopping";
      } else if (!gone.has(error.code) || turn === before) {
        // Else its run has ended since, and another turn may be open.
        throw error;
      }
    }
    before = turn;
  }
}

const gone: ReadonlySet<string> = new Set([
  "EXECUTION_FINISHED",
  "EXECUTION_NOT_FOUND",
  "EXECUTION_ERASED",
]);

const openTurnOf = storeOperation("openTurnOf", {
  key: (input) => input.id,
  *one(_: SessionContext, ref: SessionRef): Tx<ExecutionId | null> {
    return (yield* livingSession(ref)).open_turn;
  },
});

/** Marks a turn to stop and signals its run; false when another turn is open. */
const stopTurn = storeOperation("stopTurn", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session: ref, turn, signal }: StopTurn): Tx<boolean> {
    yield* signal();
    const session = yield* lockedSession(ref);
    if (session.open_turn !== turn) return yield* rollbackWith(false);
    yield* run(sql`UPDATE holdfast_session SET stop_turn = ${turn} WHERE key = ${session.key}`);
    return true;
  },
});
