import type { Encoded } from "../../model/encoded.ts";
import type { SessionHandle } from "../../model/session.ts";
import type { Database } from "../../sql/database.ts";
import type { CommitTurn } from "./turn/commit-turn.ts";
import { sessionSurroundings } from "./context.ts";
import type { SessionEnvironment } from "./context.ts";
import { preparedTurn } from "./turn/turn-prepared.ts";
import type { Turn } from "./turn/turn-prepared.ts";

/** How turns and messages become what operations on sessions take. */
export interface SessionCodec {
  /**
   * A turn as `commitTurn` takes it: checked, encoded and hashed, with the time
   * of this moment. Prepare it before the transaction, which may run again.
   * @throws HoldfastError `TURN_INVALID`, `NODE_EXISTS`, `SESSION_MISMATCH`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE` …
   */
  turn(session: SessionHandle, turn: Turn): CommitTurn;
  /** What a list shows of a stored message: the `textOf` of `forkSession`. */
  textOf(payload: Encoded): Encoded;
}

/**
 * For composing operations on sessions in a transaction of one's own. The same
 * surroundings give the same texts and hashes as the methods of `sessions` do,
 * so a turn may be committed here and repeated there.
 *
 * @example
 * const codec = sessionCodec(database);
 * const turn = codec.turn(handle, { turn: "t7", fence, nodes: [{ kind: "message", role: "assistant", payload: "done" }] });
 * await database.write("answer and bill", function* () {
 *   yield* commitTurn(turn);
 *   yield* run(sql`INSERT INTO bill (turn, cents) VALUES (${"t7"}, ${12})`);
 * });
 */
export function sessionCodec(
  database: Database,
  environment: Omit<SessionEnvironment, "entropy" | "maintenance"> = {},
): SessionCodec {
  const around = sessionSurroundings(database, environment);
  return {
    turn: (session, turn) => preparedTurn(around, session, turn),
    textOf: around.textOf,
  };
}
