import type { SessionHandle } from "../../../model/session.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { endingExpired } from "../../lease/expire.ts";
import { tellReleased } from "../../lease/keeper.ts";
import { commitTurn } from "./commit-turn.ts";
import type { TurnOutcome } from "./commit-turn.ts";
import type { SessionSurroundings } from "../context.ts";
import { preparedTurn } from "./turn-prepared.ts";
import type { Turn } from "./turn-prepared.ts";

export interface SessionTurns {
  /**
   * Commits a turn: all of it, or nothing. Safe to repeat with the same turn
   * id and content: the answer is then the one recorded, `replayed`.
   * @throws HoldfastError `LEASE_LOST`, `REVISION_CONFLICT`, `TURN_CONFLICT`, `CLAIM_LOST`, `NODE_EXISTS`,
   *   `NODE_PARENT_UNKNOWN`, `NODE_NOT_FOUND`, `ATTACHMENT_NOT_FOUND`, `TURN_INVALID`, `SESSION_MISMATCH`, `SESSION_DELETED` …
   */
  commit(
    session: SessionHandle,
    turn: Turn,
    options?: WaitOptions,
  ): Promise<TurnOutcome>;
}

export function sessionTurns(around: SessionSurroundings): SessionTurns {
  return {
    async commit(session, turn, options) {
      const input = preparedTurn(around, session, turn);
      const outcome = await endingExpired(around, input, (now) =>
        around.database.write(commitTurn, { ...input, now }, options),
      );
      if (input.release && input.fence !== undefined)
        tellReleased(around.database, input.fence);
      if (outcome.kind === "committed") around.committed();
      return outcome;
    },
  };
}
