import { holder } from "../../test/fixtures/execution-parts.ts";
import { handWritten } from "../hand-written.ts";
import type { Target } from "./load.ts";

const body = JSON.stringify({
  name: "charge the card",
  inputHash: null,
  outcome: "completed",
});
const payload = JSON.stringify("x".repeat(80));

/**
 * The same rows and columns by two statements prepared by hand. Answers with
 * appends per second.
 */
export function handWrittenAppends(options: {
  readonly path: string;
  readonly targets: readonly Target[];
  readonly each: number;
  readonly rowsPerCommit: number;
}): number {
  const { path, targets, each, rowsPerCommit } = options;
  const times = { inAll: targets.length * each, perTransaction: rowsPerCommit };
  return handWritten(path, times, (connection) => {
    const advance = connection.prepare(`
      UPDATE holdfast_execution SET version = version + 1, deaths = 0
      WHERE key = ? AND id = ? AND version = ? AND state <> 'finished' AND lifecycle = 'active' AND executor = ? AND run = ?
      RETURNING key, responses`);
    const append = connection.prepare(`
      INSERT INTO holdfast_execution_event
        (execution, version, at, responses, kind, call, seen, inbox, ordinal, body, payload)
      VALUES (?, ?, ?, ?, 'stepFinished', 7, 0, NULL, NULL, ?, ?)`);
    return (index) => {
      const target = targets[index % targets.length] as Target;
      const version = target.nextVersion + Math.floor(index / targets.length);
      const key = BigInt(target.key);
      const { executor, run } = holder;
      advance.all(key, target.id, BigInt(version - 1), executor, run);
      append.run(key, BigInt(version), BigInt(Date.now()), 0n, body, payload);
    };
  });
}
