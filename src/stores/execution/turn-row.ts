import type { Created } from "../../model/execution/event.ts";
import { noMetadata } from "../../model/execution/metadata.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { FunctionName } from "../../model/ids/function-name.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { rows, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { createUnlessTaken } from "./log/create.ts";

/** The run of a turn, to be created. */
export interface NewTurn {
  readonly id: ExecutionId;
  /** The key of the session. */
  readonly session: number;
  readonly function: FunctionName;
  readonly input: Encoded;
  readonly inputHash: string;
  readonly at: number;
  readonly dueAt: number;
}

/** Creates the run of a turn of a session; false for a taken id. */
export function* createTurn(turn: NewTurn): Tx<boolean> {
  const { id, session, at, input, inputHash } = turn;
  const created: Created = {
    kind: "created",
    role: "workflow",
    function: turn.function,
    input,
    inputHash,
    scheduledAt: turn.dueAt,
    deadlineAt: null,
    concurrencyKey: null,
    codeVersion: null,
    isPaused: false,
    scheduledBy: null,
    forkedFrom: null,
    metadata: noMetadata,
    tags: [],
  };
  return yield* createUnlessTaken({ id, at, created, session });
}

/** A run that took, or takes, a turn of a session. */
export interface TurnRun {
  readonly id: ExecutionId;
  readonly isFinished: boolean;
}

/** The next runs of turns of a session in the order of their ids. Erased ones are left out. */
export function* turnsOfSession(
  session: number,
  after: string,
  limit: number,
): Tx<readonly TurnRun[]> {
  const found = yield* rows<{ readonly id: ExecutionId; readonly state: string }>(sql`
    SELECT id, state FROM holdfast_execution
    WHERE session = ${session} AND is_erased IS NULL AND id > ${after} ORDER BY id LIMIT ${limit}`);
  return found.map(({ id, state }) => ({ id, isFinished: state === "finished" }));
}
