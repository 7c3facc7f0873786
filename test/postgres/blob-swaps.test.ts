import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { blobs } from "../../src/blobs.ts";
import { sessions } from "../../src/sessions.ts";
import type { TurnDraft } from "../../src/sessions.ts";
import { bytesOf, storedTexts } from "../conformance/blob/owners.ts";
import { fixtureOf } from "../conformance/session/fixture.ts";
import type { HeldSession, SessionFixture } from "../conformance/session/fixture.ts";
import { isDeep } from "../depth.ts";
import { Barrier, blocked, driveUntil, patience } from "./barrier.ts";
import { withPlace } from "./place.ts";
import type { Place } from "./place.ts";

interface Fixture extends Pick<SessionFixture, "database" | "held" | "store"> {
  readonly place: Place;
}

/** Two transactions at once are Postgres' own: on SQLite one waits for the other anyway. */
function fixture(body: (fixture: Fixture) => Promise<void>): () => Promise<void> {
  return () =>
    withPlace(async (place) => {
      const clock = manualClock(1_000);
      const database = await place.open({ clock });
      const { held, store } = fixtureOf(place as never, clock, database);
      await body({ place, database, held, store });
    });
}

function parts(values: Readonly<Record<string, string>>): NonNullable<TurnDraft["components"]> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, { version: 1, value }]),
  );
}

describe("sessions whose commits exchange equal blobs", () => {
  test.each([
    ["checkpoints", (value: string) => ({ components: parts({ c: value }) })],
    [
      "frames",
      (value: string) => ({
        frames: [{ id: "f", reason: "root", state: value }],
      }),
    ],
  ])("wait and do not deadlock: %s", (_, content) =>
    fixture(async ({ place, database, held, store }) => {
      const [one, two] = [await held("one"), await held("two")];
      await one.commit({ turn: "t1", ...content("left") });
      await two.commit({ turn: "t1", ...content("right") });
      const barrier = await Barrier.raise(place);
      const swap = (session: HeldSession, value: string): Promise<unknown> => {
        const { handle, fence } = session;
        const swapping = sessions(database).commit.prepare(handle, {
          turn: "t2",
          fence,
          ...content(value),
        });
        return database.write(
          `swap ${handle.id}`,
          function* () {
            yield* patience();
            const words = "INSERT INTO holdfast_session_";
            yield* driveUntil(barrier, words, swapping());
          },
          { isolation: "readCommitted" },
        );
      };
      const swaps = [swap(one, "right"), swap(two, "left")];
      await barrier.settled(2, place);
      await barrier.lift();
      await Promise.all(swaps);
      expect(database.stats().reruns).toBe(0);
      const { head, components } = await store.load("one");
      expect(components["c"]?.value ?? head.frames[0]?.state).toBe("right");
      const other = await store.load("two");
      expect(other.components["c"]?.value ?? other.head.frames[0]?.state).toBe("left");
    })(),
  );

  test(
    "do not deadlock over new ones either, whichever they change at once",
    fixture(async ({ database, held, store }) => {
      const all: HeldSession[] = [];
      for (const id of ["a", "b", "c", "d"]) all.push(await held(id));
      const rounds = isDeep ? 300 : 30;
      for (let round = 0; round < rounds; round += 1)
        await Promise.all(
          all.map(({ handle, fence, commit }, index) =>
            commit({
              turn: `t${round}`,
              fence,
              components: parts({
                x: `value ${(round + index) % 3}`,
                y: `value ${(round + 2 * index) % 3}`,
                z: `round ${round + (index % 2)}`,
              }),
            }).then(() => handle),
          ),
        );
      expect(database.stats().reruns).toBe(0);
      const last = rounds - 1;
      for (const [index, { handle }] of all.entries())
        expect(await store.components(handle)).toMatchObject({
          x: { value: `value ${(last + index) % 3}` },
          y: { value: `value ${(last + 2 * index) % 3}` },
          z: { value: `round ${last + (index % 2)}` },
        });
    }),
  );
});

describe("a commit that replaces a blob which somebody is just putting", () => {
  test(
    "waits for the put, and then leaves it alone",
    fixture(async ({ place, database, held }) => {
      const session = await held("s");
      await session.commit({ turn: "t1", components: parts({ c: "v" }) });
      const barrier = await Barrier.raise(place);
      const put = blobs(database).put.prepare(bytesOf('"v"'));
      const putting = database.write(
        "put",
        () => driveUntil(barrier, "INSERT INTO holdfast_blob_put", put()),
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const replacing = session.commit({
        turn: "t2",
        components: parts({ c: "w" }),
      });
      await blocked({ place });
      await barrier.lift();
      await Promise.all([putting, replacing]);
      expect(await storedTexts(database)).toEqual(['"v"', '"w"']);
    }),
  );

  test(
    "makes a put that comes after it store the bytes anew",
    fixture(async ({ place, database, held }) => {
      const { handle, fence, commit } = await held("s");
      await commit({ turn: "t1", components: parts({ c: "v" }) });
      const barrier = await Barrier.raise(place);
      const swapping = sessions(database).commit.prepare(handle, {
        turn: "t2",
        fence,
        components: parts({ c: "w" }),
      });
      const replacing = database.write(
        "replace",
        () => driveUntil(barrier, "DELETE FROM holdfast_blob", swapping()),
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const putting = blobs(database).put(bytesOf('"v"'));
      await blocked({ place });
      await barrier.lift();
      await Promise.all([putting, replacing]);
      expect(await storedTexts(database)).toEqual(['"w"', '"v"']);
    }),
  );
});
