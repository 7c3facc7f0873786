import { manualClock } from "../../src/model/clock.ts";
import { openPostgres } from "../../src/postgres.ts";
import type { Tx } from "../../src/sql/operation.ts";
import { commitTurn } from "../../src/stores/session/commit-turn.ts";
import { sessions } from "../../src/stores/session/index.ts";
import { sessionCodec } from "../../src/stores/session/session-codec.ts";
import { serverUrl } from "../postgres/place.ts";
import { wholeTurn } from "./turn.ts";
import type { TurnOrder } from "./turn.ts";

/**
 * A client of Postgres that commits one turn and is killed before or after the
 * n-th of its statements; if there are fewer it reports how many there were.
 */
const [schema = "", at = "0", when = "before", order = "{}"] =
  process.argv.slice(2);

const database = await openPostgres(serverUrl(), {
  schema,
  poolSize: 2,
  clock: manualClock(2_000),
});
const handle = await sessions(database).open("s");
if (handle === undefined) throw new Error("There is no session.");
const turn = sessionCodec(database).turn(
  handle,
  wholeTurn(JSON.parse(order) as TurnOrder),
);
let count = 0;
const outcome = await database.write("killed", function* () {
  count = 0;
  return yield* driveUntilKilled(commitTurn(turn));
});
process.stdout.write(`${outcome.kind} ${count}\n`);
await database.close();

/** Does what a body does, statement by statement, until its time has come. */
function* driveUntilKilled<T>(body: Tx<T>): Tx<T> {
  let step = body.next();
  while (step.done !== true) {
    count += 1;
    const isHere = count === Number(at);
    if (isHere && when === "before") process.kill(process.pid, "SIGKILL");
    const answer: unknown = yield step.value;
    if (isHere) process.kill(process.pid, "SIGKILL");
    step = body.next(answer);
  }
  return step.value;
}
