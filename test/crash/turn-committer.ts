import { manualClock } from "../../src/model/clock.ts";
import { openSqlite } from "../../src/sqlite.ts";
import { sessions } from "../../src/stores/session/index.ts";
import { driverName } from "../sqlite/place.ts";
import { FaultPoints } from "./fault-points.ts";
import { wholeTurn } from "./turn.ts";
import type { TurnOrder } from "./turn.ts";

/**
 * A process that commits one turn and is killed before or after the n-th of
 * its statements; if there are fewer it reports how many there were.
 */
const [path = "", at = "0", when = "before", order = "{}"] =
  process.argv.slice(2);

const faults = new FaultPoints(driverName);
const database = await openSqlite(path, {
  driver: driverName,
  clock: manualClock(2_000),
});
const store = sessions(database);
const handle = await store.open("s");
if (handle === undefined) throw new Error("There is no session.");
const turn = wholeTurn(JSON.parse(order) as TurnOrder);
faults.arm(Number(at), when === "after" ? "after" : "before");
const outcome = await store.commit(handle, turn);
process.stdout.write(`${outcome.kind} ${faults.count}\n`);
faults.arm(0, "before");
await database.close();
