import { parseAgent } from "../../model/session/agent.ts";
import type { SessionTurns } from "../../model/session/session.ts";
import { instantOf } from "../../model/time/clock.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { onlyWait, type Call } from "../method.ts";
import { beginWaitingTurn } from "../queue/turn-row.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { lockedSession, turnsOf, type SessionRef } from "../session-row.ts";
import type { SessionContext } from "./context.ts";

interface AssignAgent {
  readonly session: SessionRef;
  readonly agent: string | null;
}

/** @throws HoldfastError `NAME_INVALID`, `ID_MALFORMED` */
export function givenAssign(
  _: SessionContext,
  session: SessionName,
  agent: string | null,
  wait?: WaitOptions,
): Call<AssignAgent> {
  const input = {
    session: sessionNamed(session),
    agent: agent === null ? null : parseAgent(agent),
  };
  return { input, wait: onlyWait(wait) };
}

/**
 * Gives the turns of a session to an agent. Work that waits starts one, unless a turn is open.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const assignAgent = storeOperation("assignAgent", {
  snapshotSafe: true,
  key: (input) => input.session.id,
  *one(context: SessionContext, { session: ref, agent }: AssignAgent): Tx<SessionTurns> {
    const session = yield* lockedSession(ref);
    // Work that an open turn leaves to another agent is not held back: that one has not tried yet.
    const batch = agent === session.agent ? session.turn_batch : null;
    yield* run(sql`
      UPDATE holdfast_session SET agent = ${agent}, turn_batch = ${batch} WHERE key = ${session.key}`);
    const at = instantOf(() => context.clock.now());
    if (session.open_turn === null) yield* beginWaitingTurn(context, { ...session, agent }, at);
    return turnsOf(yield* lockedSession(ref));
  },
});
