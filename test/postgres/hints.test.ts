import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { operation, row, run, sql } from "../../src/kernel.ts";
import { appendEntry, createHead } from "../fixtures/append-entry.ts";
import { Cable, withCable } from "./cable.ts";
import { listen } from "./listen.ts";
import { createHeads } from "./log.ts";
import { until, withPlace } from "./place.ts";
import type { Place } from "./place.ts";

const never = 2 ** 31 - 1;

/** Makes tables and heads; all that can be heard of it has been told when this returns. */
async function prepare(place: Place, heads: number): Promise<readonly number[]> {
  const database = await place.open();
  const keys = await createHeads(database, heads);
  await database.close();
  return keys;
}

describe("hints between processes", () => {
  test.each(["batched", "transactional"] as const)(
    "tell each other's changes by notification alone (%s)",
    (notify) =>
      withPlace(async (place) => {
        await prepare(place, 0);
        const options = { notify, pollInterval: never };
        const mine = await place.open(options);
        const theirs = await place.open(options);
        const heardByMe = await listen(mine);
        const heardByThem = await listen(theirs);
        await mine.write(createHead, { id: "a" });
        await theirs.write(createHead, { id: "b" });
        await mine.write(createHead, { id: "c" });
        await until(() => heardByMe.length === 3 && heardByThem.length === 3);
        expect(heardByMe.toSorted()).toEqual(["createHead a", "createHead b", "createHead c"]);
        expect(heardByThem.toSorted()).toEqual(heardByMe.toSorted());
        expect(mine.stats().polls + theirs.stats().polls).toBe(0);
      }),
  );

  test("keep the order of one aggregate", () =>
    withPlace(async (place) => {
      const [head = 0] = await prepare(place, 1);
      const writer = await place.open();
      const reader = await place.open({ pollInterval: never });
      const heard: string[] = await listen(reader);
      const named = (name: string) =>
        operation(name, { key: appendEntry.key, one: appendEntry.one });
      const names = Array.from({ length: 30 }, (_, index) => `op${index}`);
      await Promise.all(
        names.map((name, expectedVersion) =>
          writer.write(named(name), { head, expectedVersion, payload: "p" }),
        ),
      );
      await until(() => heard.length === 30);
      expect(heard).toEqual(names.map((name) => `${name} ${head}`));
    }));

  test("are many to a notification, and large ones are still told", () =>
    withPlace(async (place) => {
      await prepare(place, 1);
      const writer = await place.open();
      const reader = await place.open({ pollInterval: never });
      const heard = await listen(reader);
      const ids = Array.from({ length: 400 }, (_, index) => `${index}-`.padEnd(200, "é"));
      await writer.write("many", function* () {
        for (const id of ids) yield* createHead({ id });
      });
      await until(() => heard.length === 400);
      expect(heard).toEqual(ids.map((id) => `createHead ${id}`));
      heard.length = 0;
      await writer.write(createHead, { id: "x".repeat(9_000) });
      await until(() => heard.length > 0);
      expect(heard).toEqual(["unknown"]);
    }));

  test("say `unknown` of a change that nobody named", () =>
    withPlace(async (place) => {
      await prepare(place, 1);
      const writer = await place.open();
      const reader = await place.open({ pollInterval: never });
      const heard = await listen(reader);
      await writer.write("unnamed", () => run(sql`UPDATE app_log_head SET version = 1`));
      await until(() => heard.length > 0);
      expect(heard).toEqual(["unknown"]);
    }));

  test("say nothing of calls that changed nothing", () =>
    withPlace(async (place) => {
      const [head = 0] = await prepare(place, 1);
      const writer = await place.open();
      const reader = await place.open({ pollInterval: never });
      const heard = await listen(reader);
      const heardByWriter = await listen(writer);
      const claimNothing = operation("claimNothing", {
        key: () => "worker",
        *one() {
          return yield* row(
            sql`UPDATE app_log_head SET version = 9 WHERE id = ${"nobody"} RETURNING key`,
          );
        },
      });
      await writer.write(claimNothing, undefined);
      await writer
        .write(appendEntry, { head, expectedVersion: 7, payload: "p" })
        .catch(() => undefined);
      await writer.write(createHead, { id: "last" });
      await until(() => heard.length > 0);
      expect(heard).toEqual(["createHead last"]);
      expect(heardByWriter).toEqual(["createHead last"]);
    }));

  test("stop with the last subscription, and start again with the next", () =>
    withPlace(async (place) => {
      await prepare(place, 1);
      const writer = await place.open();
      const reader = await place.open({ pollInterval: never });
      const heard: string[] = [];
      const stop = reader.subscribe((hint) => heard.push(hint.kind));
      await until(() => heard.length > 0);
      stop();
      const shell = place.shell();
      await until(async () => {
        const sessions = await shell`
          SELECT query FROM pg_stat_activity WHERE application_name = ${place.app}`;
        return sessions.some(({ query }) => `${query}`.startsWith("UNLISTEN"));
      });
      await writer.write(createHead, { id: "unheard" });
      // Closing waits until everything is told.
      await writer.close();
      expect(heard).toEqual(["unknown"]);
      const later = await listen(reader);
      await (await place.open()).write(createHead, { id: "heard" });
      await until(() => later.length > 0);
      expect(later).toEqual(["createHead heard"]);
    }));

  test("that a lost connection may have swallowed are replaced by `unknown`", () =>
    withPlace(async (place) => {
      await prepare(place, 0);
      const cable = await Cable.to(place.url);
      const writer = await place.open();
      const reader = await place.open({ pollInterval: never }, cable.urlFor(place.url));
      const heard = await listen(reader);
      await cable.unplug();
      await writer.write(createHead, { id: "missed" });
      await cable.plugIn();
      await until(() => heard.includes("unknown"));
      heard.length = 0;
      await writer.write(createHead, { id: "heard" });
      await until(() => heard.includes("createHead heard"));
      expect(reader.stats().polls).toBe(0);
      await reader.close();
      await cable.unplug();
    }));

  test("of what no notification told come from the poll", () =>
    withPlace(async (place) => {
      await prepare(place, 1);
      const reader = await place.open({ pollInterval: 20 });
      const heard = await listen(reader);
      const polls = reader.stats().polls;
      await place.shell()`UPDATE app_log_head SET version = 1`;
      await until(() => heard.length > 0);
      expect(heard[0]).toBe("unknown");
      expect(reader.stats().polls).toBeGreaterThan(polls);
    }));

  test("of a server that knows no LISTEN come from the poll", () =>
    withCable(async (place, cable) => {
      await prepare(place, 0);
      const writer = await place.open();
      cable.garble("LISTEN", "LISTEM");
      const reader = await place.open({ pollInterval: 20 }, cable.urlFor(place.url));
      const heard = await listen(reader);
      for (const id of ["a", "b", "c"]) {
        const { polls } = reader.stats();
        heard.length = 0;
        await writer.write(createHead, { id });
        await until(() => heard.length > 0 && reader.stats().polls > polls);
      }
      // Asked once; how it goes on asking is a matter of minutes.
      expect(cable.garbled).toBe(1);
    }));

  test("of somebody who talks nonsense on our channel are `unknown`", () =>
    withPlace(async (place) => {
      const reader = await place.open({ pollInterval: never });
      const heard = await listen(reader);
      const shell = place.shell();
      // Spelled out, because processes of different versions must agree on it.
      const hash = createHash("sha256").update(place.schema).digest("hex");
      const channel = `holdfast_${hash.slice(0, 16)}`;
      for (const payload of ["", "{}", '{"from":1}', '{"by":1,"from":"x","tx":[]}'])
        await shell`SELECT pg_notify(${channel}, ${payload})`;
      await until(() => heard.length === 4);
      expect(new Set(heard)).toEqual(new Set(["unknown"]));
    }));
});
