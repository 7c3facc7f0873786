import { monitorEventLoopDelay } from "node:perf_hooks";
import { openSqlite } from "../../src/sqlite.ts";
import { addNote, addNoteAndThrow } from "../conformance/notes.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A process that writes notes with several callers at once and reports each
 * acknowledgement on its standard output, one id per line, right after the
 * promise resolved. Some calls fail half-way on purpose.
 */
const [
  path = "",
  prefix = "",
  callers = "1",
  notesEach = "Infinity",
  walBytes = "262144",
  wanted = "",
] = process.argv.slice(2);
const delay = monitorEventLoopDelay({ resolution: 1 });
if (wanted === "report") delay.enable();

const database = await openSqlite(path, {
  driver: driverName,
  limits: { walBytes: Number(walBytes) },
});
process.stdout.write("open\n");
const body = "x".repeat(200);

async function caller(number: number): Promise<void> {
  for (let index = 0; index < Number(notesEach); index += 1) {
    const id = `${prefix}-${number}-${index}`;
    if (index % 7 === 3)
      await database.write(addNoteAndThrow, { id: `half-${id}` }).catch(() => undefined);
    await database.write(addNote, { id, body });
    process.stdout.write(`${id}\n`);
  }
}

await Promise.all(Array.from({ length: Number(callers) }, (_, number) => caller(number)));
if (wanted === "report") {
  const { checkpoints } = database.stats();
  const [p50, p99, max] = [delay.percentile(50), delay.percentile(99), delay.max].map(
    (nanos) => Math.round(nanos / 1e5) / 10,
  );
  process.stdout.write(
    `report ${JSON.stringify({ restarts: checkpoints.restarts, loopDelayMs: { p50, p99, max } })}\n`,
  );
}
await database.close();
process.stdout.write("closed\n");
