import { openSqlite } from "../../src/sqlite.ts";
import { leases } from "../../src/stores/lease/leases.ts";
import { queue } from "../../src/stores/queue/queue.ts";

/** A process that waits for the wakes of a session, consumes each, and says when it came. */
const [path = ""] = process.argv.slice(2);
const database = await openSqlite(path);
const held = await leases(database).acquire(
  "session-0",
  { owner: "waiter", incarnation: "1" },
  { lease: "10m" },
);
if (held.kind === "busy") throw new Error("Nobody else asks.");
const work = queue(database);
const stopped = new AbortController();
process.once("disconnect", () => stopped.abort());
process.send?.("ready");
try {
  for (;;) {
    await work.waitForWork("session-0", { signal: stopped.signal });
    const cameAt = performance.timeOrigin + performance.now();
    const claim = await work.claimTurn(held.lease);
    if (claim !== undefined) await work.completeWithoutCommit(held.lease, [claim.ref]);
    process.send?.(cameAt);
  }
} catch {
  await database.close();
  process.exit(0);
}
