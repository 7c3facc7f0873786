import { agentFunction, turnId, turnInput } from "../../model/session/agent.ts";
import type { Tx } from "../../sql/operation.ts";
import type { StoreContext } from "../context.ts";
import { createTurn } from "../execution/turn-row.ts";
import { writeOpenTurn, type OpenTurn, type SessionRoot } from "../session-row.ts";

/**
 * The context of all calls that may start a turn. A hash names its run, and the clock tells whether
 * a delayed one may have begun.
 */
export type TurnContext = Pick<StoreContext, "database" | "clock">;

/**
 * Opens the next turn of a locked session: creates a run of the agent's function. No run is locked,
 * and creating one waits for no other transaction, so this is allowed behind every lock.
 * `queue/turn-row.ts` decides when a turn begins and ends.
 */
export function* openTurn(
  { database: { sha256Hex } }: Pick<TurnContext, "database">,
  { key, id: session, generation, turns }: SessionRoot,
  agent: string,
  { at, dueAt, batch }: { readonly at: number } & Pick<OpenTurn, "dueAt" | "batch">,
): Tx<void> {
  for (let turn = turns + 1; ; turn += 1) {
    const named = { turn, session, generation };
    const id = turnId(named, sha256Hex);
    const isCreated = yield* createTurn({
      ...turnInput(named, sha256Hex),
      id,
      session: key,
      function: agentFunction(agent),
      at,
      dueAt: Math.max(at, dueAt),
    });
    // A taken id cannot be this turn's: the next number is tried.
    if (!isCreated) continue;
    return yield* writeOpenTurn(key, { turn, id, dueAt: dueAt > at ? dueAt : 0, batch });
  }
}
