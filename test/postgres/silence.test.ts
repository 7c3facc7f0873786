import { Socket } from "node:net";
import { describe, expect, test, vi } from "vitest";
import {
  identityColumns,
  statesText,
  terminateText,
  type Backend,
} from "../../src/backends/postgres/silence/backend-states.ts";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { type Database, type Warning, row, run, type Tx, sql } from "../../src/kernel.ts";
import { rejection } from "../conformance/backend.ts";
import { isDeep } from "../depth.ts";
import { appendEntry, createHead } from "../fixtures/append-entry.ts";
import { type Cable, withCable } from "./cable.ts";
import { listen } from "./listen.ts";
import { createHeads, logOf } from "./log.ts";
import { withOwnServer } from "./own-server.ts";
import { type Place, type Shell, until, withPlace } from "./place.ts";

/** Long enough for the one who asks to connect on a busy machine. */
const answerTimeout = 1_000;

/** The default and spells in its measure, or the same in small. */
const spells: readonly (readonly [string, number, number])[] = isDeep
  ? [
      ["20 seconds", 10_000, 20_000],
      ["60 seconds", 10_000, 60_000],
      ["ever", 10_000, Number.POSITIVE_INFINITY],
    ]
  : [
      ["twice the time limit", answerTimeout, 2 * answerTimeout],
      ["six times the time limit", answerTimeout, 6 * answerTimeout],
      ["ever", answerTimeout, Number.POSITIVE_INFINITY],
    ];

/** Silences the connections of now for so long. */
function silenceFor(cable: Cable, ms: number): void {
  const resume = cable.silence();
  if (Number.isFinite(ms)) setTimeout(resume, ms).unref();
}

interface BackendRow {
  readonly kind: string;
  readonly waitsFor: string;
}

function one(database: Database): Promise<unknown> {
  return database.read("one", () => row(sql`SELECT 1 AS one`));
}

/** Opens as many connections as the pool may have, and waits until all are idle. */
async function fillPool(
  place: Place,
  database: Database,
  size: number,
  shell: Shell = place.shell(),
): Promise<void> {
  await until(async () => {
    const sleeps = Array.from({ length: size }, () =>
      database.read("sleep", () => row(sql`SELECT pg_sleep(0.1)`)),
    );
    await Promise.all(sleeps);
    const idle = await shell`
      SELECT 1 FROM pg_stat_activity
      WHERE application_name = ${place.app} AND state = 'idle' AND query = 'ROLLBACK'`;
    return idle.length >= size;
  });
  // The last answer is on its way.
  await shell`SELECT pg_sleep(0.05)`;
}

/** Our sessions on the server, and the shell that counts them. */
async function backends(place: Place, shell: Shell): Promise<number> {
  const [found] = await shell<{ n: number }[]>`
    SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = ${place.app}`;
  return found?.n ?? 0;
}

const silentRead = { code: "DATABASE_UNREACHABLE", retryable: true };

describe("connections that fall silent", () => {
  test.each(spells)(
    "for %s are ended: reads and writes are refused as retryable, then work",
    (_, timeoutMs, spellMs) =>
      withCable(async (place, cable) => {
        const options = { poolSize: 2, answerTimeout: timeoutMs };
        const database = await place.open(options, cable.urlFor(place.url));
        await createHeads(database, 1);
        await fillPool(place, database, 2);
        silenceFor(cable, spellMs);
        const read = rejection(one(database));
        const write = rejection(database.write(createHead, { id: "never" }));
        expect(await read).toMatchObject(silentRead);
        expect(await write).toMatchObject(silentRead);
        expect(await one(database)).toEqual({ one: 1 });
        await database.write(createHead, { id: "later" });
        const heads = await database.read("heads", () =>
          row(sql`SELECT count(*) AS n FROM app_log_head WHERE id IN ('never', 'later')`),
        );
        expect(heads).toEqual({ n: 1 });
      }),
  );

  test.each(spells)("for %s let a worker resume its runs", (_, timeoutMs, spellMs) =>
    withCable(async (place, cable) => {
      const options = { poolSize: 3, answerTimeout: timeoutMs };
      const database = await place.open(options, cable.urlFor(place.url));
      const holdfast = await holdfastOn(database, {}, () => undefined);
      const direct = await holdfastOn(await place.open(), {}, () => undefined);
      const steps = workflow("steps", async (ctx) => {
        await ctx.step("first", () => 1);
        await ctx.sleep(50);
        return ctx.step("second", () => "done");
      });
      await holdfast.work([steps]);
      expect(await (await direct.start(steps)).result()).toBe("done");
      const runs = [...(await direct.startMany(steps, [{}, {}, {}, {}]))];
      silenceFor(cable, spellMs);
      runs.push(...(await direct.startMany(steps, [{}, {}, {}, {}])));
      for (const each of runs) expect(await each.result()).toBe("done");
      await holdfast.close({ timeout: "1s" });
      await direct.close();
    }),
  );

  test("in the middle of a transaction leave nothing of it, and no lock", () =>
    withCable(async (place, cable) => {
      const database = await place.open({ answerTimeout }, cable.urlFor(place.url));
      const direct = await place.open();
      await createHeads(direct, 1);
      let isFirst = true;
      const error = await rejection(
        database.write("half", function* () {
          yield* run(sql`UPDATE app_log_head SET id = 'half'`);
          if (isFirst) cable.silence();
          isFirst = false;
          yield* run(sql`UPDATE app_log_head SET id = 'whole'`);
        }),
      );
      expect(error).toMatchObject(silentRead);
      // The silent session would hold its lock for a minute.
      await direct.write(
        "lock",
        function* () {
          yield* run(sql`SET LOCAL lock_timeout = '20s'`);
          yield* run(sql`UPDATE app_log_head SET id = 'free'`);
        },
        { isolation: "readCommitted" },
      );
      expect(
        await direct.read("ids", () =>
          row(sql`SELECT string_agg(id, ',') AS ids FROM app_log_head`),
        ),
      ).toEqual({ ids: "free" });
    }));

  test("when COMMIT was sent leave the outcome unknown, for the callers of a set too", () =>
    withCable(async (place, cable) => {
      const direct = await place.open();
      const heads = await createHeads(direct, 20);
      const database = await place.open({ answerTimeout }, cable.urlFor(place.url));
      cable.silenceAt("; COMMIT");
      const error = await rejection(database.write("plain", () => createHead({ id: "plain" })));
      expect(error).toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: true });
      cable.silenceAt("; COMMIT");
      const told = await Promise.allSettled(
        heads.map((head) =>
          database.write(appendEntry, { head, expectedVersion: 0, payload: "p" }),
        ),
      );
      for (const each of told) expect(each).toMatchObject({ reason: { code: "OUTCOME_UNKNOWN" } });
      // The server never heard of the COMMIT.
      expect(await logOf(database)).toBe("");
    }));

  test("between two messages of one statement are ended too, though the server calls them active", () =>
    withCable(async (place, cable) => {
      const database = await place.open({ poolSize: 1, answerTimeout }, cable.urlFor(place.url));
      // Parse and Describe arrive, Bind does not.
      cable.silenceAfter("SELECT $1::int8 AS unheard");
      const error = await rejection(
        database.read("unheard", () => row(sql`SELECT ${7}::int8 AS unheard`)),
      );
      expect(error).toMatchObject(silentRead);
      expect(await one(database)).toEqual({ one: 1 });
    }));

  test("while idle are ended with the first that a call finds silent", () =>
    withCable(async (place, cable) => {
      const poolSize = 4;
      const database = await place.open({ poolSize, answerTimeout }, cable.urlFor(place.url));
      await fillPool(place, database, poolSize);
      cable.silence();
      expect(await rejection(one(database))).toMatchObject(silentRead);
      for (let call = 0; call < poolSize; call += 1)
        expect(await one(database)).toEqual({ one: 1 });
    }));

  test("leave those in peace that have answered meanwhile", () =>
    withCable(async (place, cable) => {
      const database = await place.open({ poolSize: 2, answerTimeout }, cable.urlFor(place.url));
      await fillPool(place, database, 2);
      cable.silenceAt("unheard");
      let isOver = false;
      const unheard = rejection(database.read("unheard", () => row(sql`SELECT 1 AS unheard`)));
      const ended = unheard.then((error) => {
        isOver = true;
        return error;
      });
      const pid = (): Promise<unknown> =>
        database.read("pid", () => row(sql`SELECT pg_backend_pid() AS pid`));
      const before = await pid();
      await until(async () => {
        await pid();
        return isOver;
      });
      expect(await ended).toMatchObject(silentRead);
      expect(await pid()).toEqual(before);
    }));

  test("again and again never fill the server", () =>
    withCable(async (place, cable) => {
      const poolSize = 3;
      const database = await place.open({ poolSize, answerTimeout }, cable.urlFor(place.url));
      await listen(database);
      const shell = place.shell();
      let most = 0;
      for (let spell = 0; spell < (isDeep ? 20 : 4); spell += 1) {
        await fillPool(place, database, poolSize, shell);
        cable.silence();
        const calls = Array.from({ length: poolSize }, () => rejection(one(database)));
        for (const error of await Promise.all(calls)) expect(error).toMatchObject(silentRead);
        most = Math.max(most, await backends(place, shell));
      }
      // The pool, the session beside it, and the one that asks; and the counting shell.
      expect(most).toBeLessThanOrEqual(poolSize + 3);
      // What fell silent is gone from the server, though nothing reached it over those lines.
      await until(async () => (await backends(place, shell)) <= poolSize + 2);
    }));

  test("and new ones that say nothing either are told, and the database comes back", () =>
    withCable(async (place, cable) => {
      const database = await place.open({ poolSize: 2, answerTimeout }, cable.urlFor(place.url));
      await fillPool(place, database, 2);
      cable.freeze();
      expect(await rejection(one(database))).toMatchObject(silentRead);
      cable.thaw();
      await until(() =>
        one(database).then(
          () => true,
          () => false,
        ),
      );
    }));
});

describe("a statement that takes longer than the time limit", () => {
  test("is waited for, and told once", () =>
    withPlace(async (place) => {
      const warnings: Warning[] = [];
      const onWarning = (warning: Warning): void => void warnings.push(warning);
      const database = await place.open({ answerTimeout, onWarning });
      const slept = await database.read("sleeps", () =>
        row(sql`SELECT 1 AS slept, pg_sleep(${4})::text AS nothing`),
      );
      expect(slept).toMatchObject({ slept: 1 });
      expect(warnings.map(({ code }) => code)).toEqual(["ANSWER_SLOW"]);
      expect(warnings[0]?.message).toContain("SELECT 1 AS slept");
    }));

  test("is told to the log hook of the runtime", () =>
    withPlace(async (place) => {
      const { openHoldfast } = await import("../../src/open/open-holdfast.ts");
      await place.open();
      const told: unknown[] = [];
      const holdfast = await openHoldfast(place.url, {
        postgres: { schema: place.schema, poolSize: 2, answerTimeout },
        onEvent: ({ level, details, source }) => told.push([level, details["code"], source]),
      });
      await holdfast.database.read("sleeps", () => row(sql`SELECT pg_sleep(2)::text AS nothing`));
      expect(told).toEqual([["warn", "ANSWER_SLOW", "runtime"]]);
      await holdfast.close();
    }));

  test("is waited for when it waits for a lock and this process was busy meanwhile", () =>
    withPlace(async (place) => {
      const database = await place.open({ answerTimeout, onWarning: () => undefined });
      await createHeads(database, 1);
      const shell = place.shell();
      await shell`BEGIN`;
      await shell`SELECT 1 FROM app_log_head FOR UPDATE`;
      const renamed = database.write(
        "rename",
        function* (): Tx<string> {
          yield* run(sql`SET LOCAL lock_timeout = 0`);
          yield* run(sql`UPDATE app_log_head SET id = 'renamed'`);
          return "renamed";
        },
        { isolation: "readCommitted" },
      );
      const stopped = performance.now();
      while (performance.now() < stopped + 3 * answerTimeout);
      await shell`SELECT pg_sleep(1)`;
      await shell`COMMIT`;
      expect(await renamed).toBe("renamed");
    }));

  test("is waited for when it is a COMMIT whose standby does not answer", () =>
    withOwnServer(async (place) => {
      const warnings: Warning[] = [];
      const onWarning = (warning: Warning): void => void warnings.push(warning);
      const database = await place.open({ poolSize: 1, answerTimeout, onWarning });
      await createHeads(database, 1);
      const shell = place.shell();
      await shell`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`;
      await shell`SELECT pg_reload_conf()`;
      let written: Promise<unknown> = Promise.resolve();
      // A COMMIT waits once the server's checkpointer has read the setting, which no query shows.
      await until(async () => {
        let isWritten = false;
        written = database
          .write("rename", () => run(sql`UPDATE app_log_head SET id = 'renamed'`))
          .finally(() => (isWritten = true));
        await until(() => isWritten || warnings.length > 0);
        return warnings.length > 0;
      });
      await shell`SELECT pg_sleep(3)`;
      expect(warnings.map(({ code }) => code)).toEqual(["ANSWER_SLOW"]);
      expect(warnings[0]?.message).toContain("SyncRep");
      await shell`ALTER SYSTEM RESET synchronous_standby_names`;
      await shell`SELECT pg_reload_conf()`;
      expect(await written).toBe(1);
    }));
});

describe("backends that are to end", () => {
  test("are ended when they wait for their client, and left alone while they work", () =>
    withPlace(async (place) => {
      const [working, idle, other] = [place.shell(), place.shell(), place.shell()];
      const identity = async (shell: Shell): Promise<Backend> =>
        (await shell.unsafe<Backend[]>(`SELECT ${identityColumns}`))[0] ?? { pid: 0, since: "" };
      const both = [await identity(working), await identity(idle)];
      await other`SELECT pg_advisory_lock(1)`;
      const locked = working`SELECT pg_advisory_lock(1) IS NULL AS is_null`.execute();
      const waits = async (): Promise<boolean> => {
        const states = await other.unsafe<BackendRow[]>(statesText(both));
        return states.some(({ kind, waitsFor }) => kind === "working" && waitsFor !== "");
      };
      await until(waits);
      expect(await other.unsafe(terminateText(both))).toHaveLength(1);
      await until(async () => (await other.unsafe(statesText(both))).length === 1);
      expect(await waits()).toBe(true);
      await other`SELECT pg_advisory_unlock(1)`;
      expect(await locked).toHaveLength(1);
    }));
});

describe("a connection to the server", () => {
  test("is kept alive by TCP, so that a peer that is gone is noticed", () =>
    withPlace(async (place) => {
      const keepAlive = vi.spyOn(Socket.prototype, "setKeepAlive");
      try {
        await one(await place.open());
        expect(keepAlive.mock.calls.at(-1)).toEqual([true, 10_000]);
      } finally {
        keepAlive.mockRestore();
      }
    }));
});
