import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { leaseOn, openTold } from "./told-database.ts";
import { collector } from "./unread-collector.ts";

/** A process that runs collectors until it is told to end, or killed. */
const [place = ""] = process.argv.slice(2);

const holdfast = await holdfastOn(await openTold(place), {}, () => undefined);
await holdfast.work([collector], { lease: leaseOn(place, "2s") });
process.stdout.write("ready\n");
process.stdin.once("data", () => void holdfast.close().then(() => process.stdin.destroy()));
