import { describe, expect, test } from "vitest";
import { artifacts, blobs, maintenance } from "../../src/blobs.ts";
import { awaitEvents, effects } from "../../src/effects.ts";
import { sessions } from "../../src/sessions.ts";
import { addNote, createNoteTable, noteHalves } from "../conformance/notes.ts";
import { again, pastRival, withStale } from "./stale-snapshot.ts";
import type { Outcome, Stale } from "./stale-snapshot.ts";

describe("an effect done and recorded with an old snapshot", () => {
  const scope = { kind: "turn", session: "s", id: "t" } as const;
  const ask = { kind: "llm", input: 1 } as const;

  /** Does an effect in one transaction with its record, which begins before the rival. */
  function transacted(
    { database, barrier }: Stale,
    rival: () => Promise<unknown>,
  ): Promise<Outcome> {
    return pastRival(barrier, rival, (stopOnce) =>
      effects(database).transact(scope, "k", ask, function* () {
        yield* stopOnce();
        yield* addNote({ id: "n" });
        return "ours";
      }),
    );
  }

  test(
    "is what was recorded since, and leaves nothing of its own",
    withStale(async (stale) => {
      const { database } = stale;
      await database.write("table", createNoteTable);
      await sessions(database).create("s");
      const rival = () => effects(database).execute(scope, "k", ask, () => "theirs");
      expect(await transacted(stale, rival)).toEqual({
        runs: again,
        value: "theirs",
      });
      expect(await noteHalves(database)).toBe("");
    }),
  );

  test(
    "is refused when the session was deleted since",
    withStale(async (stale) => {
      const { database } = stale;
      await database.write("table", createNoteTable);
      await sessions(database).create("s");
      expect(await transacted(stale, () => sessions(database).delete("s"))).toMatchObject({
        runs: again,
        code: "SESSION_NOT_FOUND",
      });
      expect(await noteHalves(database)).toBe("");
    }),
  );
});

describe("a blob kept with an old snapshot", () => {
  test(
    "is not there yet when it was put since: what began later is not seen",
    withStale(async ({ database, after }) => {
      const store = blobs(database);
      // The first write of a database records its payload codec, which the old snapshot would miss too.
      await store.put(new Uint8Array([0]));
      const content = new Uint8Array([7]);
      const hash = "ca358758f6d27e6cf45272937977a748fd88391db679ceda7dc7bf1f005ee879";
      const keep = store.keep.prepare(hash, "invoice-7");
      expect(
        await after(
          () => store.put(content),
          () => keep(),
        ),
      ).toEqual({ runs: 1, code: "BLOB_NOT_FOUND" });
      expect(await store.keep(hash, "invoice-7")).toBe(true);
    }),
  );

  test(
    "is not there when it was collected since",
    withStale(async ({ database, clock, after }) => {
      const store = blobs(database);
      const { hash } = await store.put(new Uint8Array([1]));
      const keep = store.keep.prepare(hash, "invoice-7");
      const rival = async (): Promise<void> => {
        clock.advance(86_400_000);
        await maintenance(database).collect();
      };
      expect(await after(rival, () => keep())).toMatchObject({
        runs: again,
        code: "BLOB_NOT_FOUND",
      });
    }),
  );

  test(
    "is kept once when it was kept since",
    withStale(async ({ database, after }) => {
      const store = blobs(database);
      const { hash } = await store.put(new Uint8Array([1]));
      const keep = store.keep.prepare(hash, "invoice-7");
      expect(
        await after(
          () => store.keep(hash, "invoice-7"),
          () => keep(),
        ),
      ).toMatchObject({ runs: again, value: false });
    }),
  );
});

describe("bytes put with an old snapshot", () => {
  const bytes = new Uint8Array([1, 2, 3]);

  test(
    "are stored once when equal ones were put since",
    withStale(async ({ database, after }) => {
      const store = blobs(database);
      const put = store.put.prepare(bytes);
      const outcome = await after(
        () => store.put(bytes),
        () => put(),
      );
      expect(outcome).toMatchObject({ runs: again });
      const found = await maintenance(database).collect();
      expect(found).toMatchObject({ examined: 1, deleted: 0 });
    }),
  );

  test(
    "are stored again when equal ones were collected since",
    withStale(async ({ database, clock, after }) => {
      const store = blobs(database);
      const { hash } = await store.put(bytes);
      const put = store.put.prepare(bytes);
      const rival = async (): Promise<void> => {
        clock.advance(86_400_000);
        await maintenance(database).collect();
      };
      await after(rival, () => put());
      expect((await store.get(hash))?.content).toEqual(bytes);
    }),
  );

  test(
    "under a name replace what was named so since",
    withStale(async ({ database, after }) => {
      const names = artifacts(database);
      const put = names.put.prepare("modules", "main", bytes);
      const outcome = await after(
        () => names.put("modules", "main", new Uint8Array([9])),
        () => put(),
      );
      expect(outcome).toMatchObject({ runs: again });
      const { content } = await names.load("modules", "main");
      expect(content).toEqual(bytes);
    }),
  );

  test(
    "lose a name that was given other bytes since, and those stay whole",
    withStale(async ({ database, after }) => {
      const names = artifacts(database);
      await names.put("modules", "main", bytes);
      const remove = names.remove.prepare("modules", "main");
      const outcome = await after(
        () => names.put("modules", "main", new Uint8Array([9])),
        () => remove(),
      );
      expect(outcome).toMatchObject({ runs: again, value: true });
      expect(await names.get("modules", "main")).toBeUndefined();
    }),
  );
});

describe("an await-event opened with an old snapshot", () => {
  const scope = { kind: "turn", session: "s", id: "t" } as const;

  test(
    "is the one that was opened since",
    withStale(async ({ database, after }) => {
      await sessions(database).create("s");
      const store = awaitEvents(database);
      const open = store.open.prepare(scope, "approval");
      expect(
        await after(
          () => store.open(scope, "approval"),
          () => open(),
        ),
      ).toMatchObject({ runs: again, value: { existed: true } });
    }),
  );

  test(
    "is refused when it was revoked since",
    withStale(async ({ database, after }) => {
      await sessions(database).create("s");
      const store = awaitEvents(database);
      await store.open(scope, "approval");
      const open = store.open.prepare(scope, "approval");
      expect(
        await after(
          () => store.revoke(scope, "approval"),
          () => open(),
        ),
      ).toMatchObject({ runs: again, code: "AWAIT_EVENT_REVOKED" });
    }),
  );

  test(
    "is refused when the session was deleted since",
    withStale(async ({ database, after }) => {
      await sessions(database).create("s");
      const open = awaitEvents(database).open.prepare(scope, "approval");
      expect(
        await after(
          () => sessions(database).delete("s"),
          () => open(),
        ),
      ).toMatchObject({ runs: again, code: "SESSION_NOT_FOUND" });
    }),
  );
});
