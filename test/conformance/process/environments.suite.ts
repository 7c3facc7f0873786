import { describe, expect, test } from "vitest";
import { blobKinds, blobs, maintenance, type Blobs, type Maintenance } from "../../../src/blobs.ts";
import { manualClock, type ManualClock } from "../../../src/model/time/clock.ts";
import { processes, type Processes } from "../../../src/processes.ts";
import { type Database, run, sql } from "../../../src/kernel.ts";
import { rejection, withPlace, type Backend } from "../backend.ts";
import { bytesOf, storedTexts } from "../blob/owners.ts";
import { stored } from "./fixture.ts";

interface Fixture {
  readonly database: Database;
  readonly clock: ManualClock;
  readonly store: Processes;
  readonly bytes: Blobs;
  readonly keeper: Maintenance;
}

const kind = blobKinds.processEnvironment;

export function processEnvironmentsSuite(backend: Backend): void {
  const on = (body: (fixture: Fixture) => Promise<void>) => () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000_000);
      const database = await place.open({ clock });
      await body({
        database,
        clock,
        store: processes(database),
        bytes: blobs(database),
        keeper: maintenance(database, { grace: 0 }),
      });
    });

  describe("the environment of a process", () => {
    test(
      "[A54] is shown wherever the process is, found again, and another one is a conflict",
      on(async ({ store, bytes }) => {
        const { hash: environment } = await bytes.put(bytesOf("plugins"), { kind });
        const { hash: other } = await bytes.put(bytesOf("other plugins"), { kind });
        const draft = { id: "p", kind: "tool", environment };
        expect((await store.register(draft)).record).toMatchObject({ environment });
        expect(await store.register(draft)).toMatchObject({ existed: true });
        expect(await store.get("p")).toMatchObject({ environment });
        expect((await store.list()).items).toMatchObject([{ id: "p", environment }]);
        for (const change of [{ environment: other }, { environment: null }])
          expect(await rejection(store.register({ ...draft, ...change }))).toMatchObject({
            code: "PROCESS_CONFLICT",
            details: { id: "p", part: "environment" },
          });
        const spawned = await store.spawn({
          id: "run",
          kind: "workflow",
          environment,
          execution: { function: "f" },
        });
        expect(spawned.record).toMatchObject({ environment });
        expect((await store.register({ id: "bare", kind: "tool" })).record.environment).toBe(null);
      }),
    );

    test(
      "[A54] that is missing, of another kind or no hash is refused, and nothing is written",
      on(async ({ database, store, bytes }) => {
        const { hash: generic } = await bytes.put(bytesOf("plain"));
        const before = await stored(database);
        const refused = async (environment: unknown) => {
          const draft = { id: "p", kind: "tool", environment: environment as string };
          const codes = await Promise.all([
            rejection(store.register(draft)),
            rejection(store.spawn({ ...draft, execution: { function: "f" } })),
          ]);
          return codes.map(({ code }) => code);
        };
        const twice = (code: string): readonly string[] => [code, code];
        expect(await refused("0".repeat(64))).toEqual(twice("BLOB_NOT_FOUND"));
        expect(await refused(generic)).toEqual(twice("PROCESS_INVALID"));
        for (const given of ["", "ABC", 7, {}, [generic]])
          expect(await refused(given)).toEqual(twice("ID_MALFORMED"));
        expect(await stored(database)).toEqual(before);
      }),
    );

    test(
      "[A48] is kept by collections until the last process that names it is pruned",
      on(async ({ database, clock, store, bytes, keeper }) => {
        const { hash: environment } = await bytes.put(bytesOf("plugins"), { kind });
        await bytes.put(bytesOf("orphan"), { kind });
        for (const id of ["a", "b"]) await store.register({ id, kind: "tool", environment });
        clock.advance(1);
        expect(await keeper.collect()).toMatchObject({ deleted: 1, kept: 1 });
        for (const id of ["a", "b"]) {
          expect(await storedTexts(database)).toEqual(["plugins"]);
          await store.complete(id, { kind: "completed", value: 7 });
          clock.advance(10);
          await store.prune({ olderThan: 5 });
          expect(await store.get(id)).toMatchObject({ environment: null });
          await keeper.collect();
        }
        expect(await storedTexts(database)).toEqual([]);
        expect((await keeper.check()).damaged).toEqual([]);
      }),
    );

    test(
      "[A51] whose blob is missing is named, and nothing is collected",
      on(async ({ database, clock, store, bytes, keeper }) => {
        const { hash: environment } = await bytes.put(bytesOf("plugins"), { kind });
        await store.register({ id: "a", kind: "tool", environment });
        await bytes.put(bytesOf("orphan"));
        clock.advance(1);
        await database.write("damage", () =>
          run(sql`DELETE FROM holdfast_blob WHERE hash = ${environment}`),
        );
        expect(await keeper.collect()).toMatchObject({
          deleted: 0,
          refused: { table: "holdfast_process", key: "a" },
        });
        expect((await keeper.check()).damaged).toMatchObject([
          { table: "holdfast_blob_put" },
          {
            table: "holdfast_process",
            key: "a",
            reason: "The blob of its environment is missing.",
          },
        ]);
      }),
    );
  });
}
