import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import type { SessionId } from "../../src/sessions.ts";
import { lockRow, row, rows, run, sql, type Database } from "../../src/kernel.ts";
import { recordIntent, recordStored } from "../../src/stores/attachment/manifest.ts";
import { createSession, hashes } from "../conformance/blob/owners.ts";
import { Barrier, blocked } from "./barrier.ts";
import { withPlace } from "./place.ts";
import type { Place } from "./place.ts";

interface Fixture {
  readonly place: Place;
  readonly barrier: Barrier;
  /** Two pools on one database. */
  readonly one: Database;
  readonly two: Database;
}

function fixture(body: (fixture: Fixture) => Promise<void>): () => Promise<void> {
  return () =>
    withPlace(async (place) => {
      const clock = manualClock(1_000);
      const one = await place.open({ clock });
      const two = await place.open({ clock });
      for (const id of ["a", "b", "c"]) await createSession(one, id);
      await body({ place, one, two, barrier: await Barrier.raise(place) });
    });
}

/** Records that a session is about to have the bytes "abc", as a copy of this name. */
function intend(database: Database, session: string, name: string): Promise<unknown> {
  return database.write(recordIntent, {
    session: { id: session as SessionId },
    id: hashes.abc,
    size: 3,
    description: { mediaType: "text/plain" },
    at: 1_000,
    store: "database",
    name,
  });
}

async function states(database: Database): Promise<string> {
  const found = await database.read("states", () =>
    rows<{ readonly name: string; readonly state: string }>(
      sql`SELECT name, state FROM holdfast_attachment_copy ORDER BY name`,
    ),
  );
  return found.map(({ name, state }) => `${name} ${state}`).join(", ");
}

describe("two puts of equal bytes that end at once", () => {
  test(
    "leave one copy: the second waits for the first and sees that it is stored",
    fixture(async ({ place, barrier, one, two }) => {
      await intend(one, "a", "n1");
      await intend(two, "b", "n2");
      const first = one.write(
        "first",
        function* () {
          const isStored = yield* recordStored({ name: "n1" });
          yield* barrier.stop();
          return isStored;
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const second = two.write(recordStored, { name: "n2" });
      await blocked({ place });
      await barrier.lift();
      expect([await first, await second]).toEqual([true, true]);
      expect(await states(one)).toBe("n1 stored, n2 condemned");
    }),
  );

  test(
    "leave one copy also when the one that is stored came while the other waited",
    fixture(async ({ place, barrier, one, two }) => {
      await intend(one, "a", "n1");
      await intend(one, "b", "n2");
      const giving = one.write(
        "give up",
        function* () {
          yield* row(sql`
          SELECT name FROM holdfast_attachment_copy WHERE name = 'n1' ${lockRow}`);
          yield* barrier.stop();
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const waiting = two.write(recordStored, { name: "n2" });
      await blocked({ place });
      await intend(one, "c", "n3");
      // Past the others, who would wait too: what counts is what the one that waited sees.
      await one.write(
        "stored",
        () => run(sql`UPDATE holdfast_attachment_copy SET state = 'stored' WHERE name = 'n3'`),
        { isolation: "readCommitted" },
      );
      await barrier.lift();
      await giving;
      expect(await waiting).toBe(true);
      expect(await states(one)).toBe("n1 writing, n2 condemned, n3 stored");
    }),
  );

  test(
    "tell a put that was given up while it waited",
    fixture(async ({ place, barrier, one, two }) => {
      await intend(one, "a", "n1");
      const giving = one.write(
        "give up",
        function* () {
          yield* run(sql`
          DELETE FROM holdfast_attachment_copy WHERE name = 'n1'`);
          yield* barrier.stop();
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const waiting = two.write(recordStored, { name: "n1" });
      await blocked({ place });
      await barrier.lift();
      await giving;
      expect(await waiting).toBe(false);
    }),
  );
});
