import { manualClock } from "../../src/model/time/clock.ts";
import { actions } from "./actions.ts";
import type { ActionName } from "./actions.ts";
import { FaultPoints } from "./fault-points.ts";
import type { KillPoint } from "./fault-points.ts";
import type { Orders } from "./prepare-actions.ts";
import { isOnServer, openTold } from "./told-database.ts";

/**
 * A process that does one action and is killed at the statement it is told; if
 * there is none such it reports how many statements there were.
 */
const [place = "", name = "", orders = "", point = ""] = process.argv.slice(2);

const faults = new FaultPoints();
if (isOnServer(place)) await faults.patchServer();
else faults.patchFile((await import("../sqlite/place.ts")).driverName);
const database = await openTold(place, { clock: manualClock(2_000) });
faults.arm(point === "" ? undefined : (JSON.parse(point) as KillPoint));
await actions[name as ActionName](database, JSON.parse(orders) as Orders, (line) =>
  process.stdout.write(`${line}\n`),
);
faults.disarm();
process.stdout.write(`done ${faults.seen.statement}\n`);
await database.close();
