import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { isHoldfastError } from "../../src/model/errors.ts";
import { rows, run, sql, type Database } from "../../src/kernel.ts";
import { isDeep } from "../depth.ts";
import { appendEntry, createHead } from "../fixtures/append-entry.ts";
import { createHeads } from "./log.ts";
import { listen } from "./listen.ts";
import { crashServer } from "./crash-server.ts";
import { withOwnServer } from "./own-server.ts";
import { until } from "./place.ts";

const writers = 30;

/** Appends to one head until told to stop; remembers what was acknowledged and what failed. */
class Writer {
  readonly head: number;
  acknowledged = 0;
  readonly errors: string[] = [];
  #stopped = false;
  readonly ended: Promise<void>;

  constructor(database: Database, head: number) {
    this.head = head;
    this.ended = this.#work(database);
  }

  stop(): Promise<void> {
    this.#stopped = true;
    return this.ended;
  }

  async #work(database: Database): Promise<void> {
    let version = 0;
    while (!this.#stopped) {
      try {
        const entry = {
          head: this.head,
          expectedVersion: version,
          payload: "p",
        };
        version = (await database.write(appendEntry, entry)).version;
        this.acknowledged = version;
      } catch (error) {
        this.errors.push(codeOf(error));
        version = await versionOf(database, this.head);
      }
    }
  }
}

function codeOf(error: unknown): string {
  return isHoldfastError(error) && error.retryable ? error.code : `not retryable: ${String(error)}`;
}

async function versionOf(database: Database, head: number): Promise<number> {
  const [found] = await database.read("version", () =>
    rows<{ version: number }>(sql`SELECT version FROM app_log_head WHERE key = ${head}`),
  );
  return found?.version ?? -1;
}

describe("a server that crashes and recovers under load", () => {
  test("loses nothing acknowledged, fails calls only as retryable, and goes on", () =>
    withOwnServer(async (place) => {
      const database = await place.open({ poolSize: 8 });
      const heads = await createHeads(database, writers);
      const all = heads.map((head) => new Writer(database, head));
      const progress = (): number => all.reduce((sum, writer) => sum + writer.acknowledged, 0);
      for (let round = 0; round < (isDeep ? 10 : 2); round += 1) {
        const before = progress();
        await until(() => progress() > before + 500);
        await crashServer(place);
      }
      const after = progress();
      await until(() => progress() > after + 500);
      await Promise.all(all.map((writer) => writer.stop()));
      const errors = new Set(all.flatMap((writer) => writer.errors));
      for (const code of errors) expect(["CONNECTION_LOST", "OUTCOME_UNKNOWN"]).toContain(code);
      const stored = await database.read("stored", () =>
        rows<{ head: number; n: number; newest: number }>(sql`
          SELECT head, count(*) AS n, max(version) AS newest FROM app_log GROUP BY head ORDER BY head`),
      );
      expect(stored.map(({ head }) => head)).toEqual(heads);
      for (const [index, { n, newest }] of stored.entries()) {
        expect(newest).toBeGreaterThanOrEqual(all[index]?.acknowledged ?? 0);
        expect(n).toBe(newest);
      }
    }));
});

describe("on a server of its own", () => {
  test("the poll stays quiet while notifications tell everything, and fsync = off is reported", () =>
    withOwnServer(async (place) => {
      const options = { pollInterval: "2s" } as const;
      const mine = await place.open(options);
      const theirs = await place.open(options);
      await createHeads(mine, 0);
      await listen(mine);
      const heard = await listen(theirs);
      const shell = place.shell();
      // The looks of each session that polls: what is suspected at one is
      // judged at the next, so that two must come after the one of listening.
      const looks = new Map<number, Set<string>>();
      const isJudged = (): boolean =>
        [...looks.values()].filter(({ size }) => size > 2).length === 2;
      const polls = (): number => mine.stats().polls + theirs.stats().polls;
      let quiet = { since: 0, polls: 0 };
      let rounds = 0;
      // Were it not quiet, this would go on for ever.
      for (; rounds - quiet.since < 200 || !isJudged(); rounds += 1) {
        // Two seconds go by from look to look; there is no use in filling them.
        // What was last said in a session is seen before it says something else.
        if (rounds - quiet.since > 200) await sleep(50);
        for (const { pid, at } of await shell<{ pid: number; at: string }[]>`
          SELECT pid, query_start::text AS at FROM pg_stat_activity
          WHERE application_name = ${place.app}
            AND query LIKE 'SELECT pg_current_snapshot()%'`)
          looks.set(pid, (looks.get(pid) ?? new Set()).add(at));
        await mine.write(createHead, { id: `mine ${rounds}` });
        await theirs.write(createHead, { id: `theirs ${rounds}` });
        if (rounds % 50 === 0)
          await mine.write("unnamed", () =>
            run(sql`UPDATE app_log_head SET version = 0 WHERE id = 'mine 0'`),
          );
        if (polls() === quiet.polls) continue;
        // What a poll finds it suspects for half a second. A notification that
        // a busy machine brings later is no silence: it is looked for anew.
        quiet = { since: rounds, polls: polls() };
        looks.clear();
      }
      const named = (hint: string): boolean => hint.startsWith("createHead");
      await until(() => heard.filter(named).length === 2 * rounds);

      await shell`ALTER SYSTEM SET fsync = off`;
      await shell`SELECT pg_reload_conf()`;
      await until(async () => {
        const [found] = await shell`SHOW fsync`;
        return found?.["fsync"] === "off";
      });
      const warnings: string[] = [];
      const unsafe = await place.open({
        onWarning: ({ code }) => warnings.push(code),
      });
      expect(unsafe.durability).toBe("normal");
      expect(warnings).toEqual(["FSYNC_OFF"]);
    }));
});
