import { isHoldfastError } from "../../src/model/errors.ts";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { type OwnerId, type Database, rows, sql } from "../../src/kernel.ts";
import { leases, sessions } from "../../src/sessions.ts";
import { schedules } from "../../src/triggers.ts";
import type { SqliteDatabase } from "../../src/sqlite.ts";
import { pendingWaits } from "./pending-waits.ts";
import { openTold } from "./told-database.ts";

/**
 * A process that does one thing with a database and nothing to end itself: it
 * neither closes nor exits, so it lives exactly as long as something keeps it.
 */
const [place = "", order = "", name = ""] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const database = await openTold(place);
switch (order) {
  case "wait": {
    const awaited = pendingWaits[name];
    if (awaited === undefined) throw new Error(`Nobody waits for ${name}.`);
    say(await endOf(awaited.wait(database, { timeout: "50 ms" })));
    await awaited.wait(database, {});
    say("answered");
    break;
  }
  case "waits":
    // In memory there is nobody else to prepare it, or to answer.
    await sessions(database).create("s");
    for (const [each, { prepare, wait }] of Object.entries(pendingWaits)) {
      await prepare(database);
      say(`${each} ${await endOf(wait(database, { timeout: "50 ms" }))}`);
    }
    break;
  case "call":
    for (const [call, made] of callsOf(database)) {
      await made();
      say(call);
    }
    break;
  case "schedule": {
    const scheduler = schedules(database).run(
      { report: () => rows(sql`SELECT 1 AS one`) },
      {
        onFired: () => {
          say("fired");
          void scheduler.close();
        },
      },
    );
    say("running");
    break;
  }
  case "work": {
    const holdfast = await holdfastOn(database);
    const napping = workflow("napping", async (ctx) => {
      await ctx.sleep(200);
      await ctx.step("say", () => say("slept"));
      await ctx.sleep("1 day");
    });
    await holdfast.work([napping]);
    const run = await holdfast.start(napping, undefined, { id: "napping" });
    holdfast.closeOnSignals();
    // Told to end, the process ends; that nobody gets the result is no failure.
    void run.result();
    break;
  }
  case "ask": {
    const holdfast = await holdfastOn(database);
    const asked = workflow("asked", async () => "answered");
    const again = async (ask: () => Promise<unknown>): Promise<void> => {
      for (;;) await ask();
    };
    await holdfast.work([asked]);
    const run = await holdfast.start(asked);
    holdfast.closeOnSignals();
    // What is asked too late is no failure either: there is nobody who could catch it.
    void again(() => holdfast.start(asked));
    void again(() => holdfast.startMany(asked, [{}, {}]));
    void again(() => run.status());
    void again(() => run.events());
    database.subscribe(({ kind }) => {
      if (kind === "closing") void holdfast.work([asked]);
    });
    break;
  }
  case "close":
    database.keepAlive();
    await database.close();
    break;
  case "subscribe":
    database.subscribe(() => undefined);
    break;
  case "keep": {
    await sessions(database).create("kept");
    const held = await leases(database).acquire("kept", {
      owner: "child",
      incarnation: "1",
    });
    if (held.kind === "acquired") leases(database).keep(held.lease);
    break;
  }
  default:
}
say("end of script");

/** Whatever is called and awaited, one after the other, with nothing else going on. */
function* callsOf(
  on: Database | SqliteDatabase,
): Generator<readonly [string, () => Promise<unknown>]> {
  const note = (): Promise<unknown> => on.write("note", () => rows(sql`SELECT 1 AS one`));
  yield ["write", note];
  yield ["writes", () => Promise.all(Array.from({ length: 300 }, note))];
  yield ["read", () => on.read("one", () => rows(sql`SELECT 1 AS one`))];
  yield ["pause", () => on.pause()];
  yield ["writable", () => on.writable()];
  yield ["liveness", () => on.liveness(name as OwnerId)];
  if ("backup" in on) {
    yield ["check", () => on.check()];
    yield ["full check", () => on.check({ full: true })];
    yield ["sizes", () => on.sizes()];
    yield ["exportRows", () => on.exportRows("holdfast_session").next()];
    yield ["backup", () => on.backup(`${place}.${process.pid}.backup`)];
  }
  yield ["close", () => on.close()];
}

async function endOf(wait: Promise<unknown>): Promise<string> {
  try {
    await wait;
    return "answered";
  } catch (error) {
    return isHoldfastError(error) ? error.code : String(error);
  }
}
