import { describe, expect, test } from "vitest";
import { triggers, type Triggers } from "../../src/triggers.ts";
import { Barrier, blocked, driveUntil } from "./barrier.ts";
import { withPlace } from "./place.ts";

const source = { type: "webhook", key: "github" };

/** Waiting for a row is Postgres' own: on SQLite one waits for the other before it begins. */
describe("a subscription of the host, while an occurrence is recorded for it", () => {
  test.each<[string, (store: Triggers) => Promise<unknown>]>([
    ["disabled", (store) => store.disable("a")],
    ["deleted", (store) => store.delete("a")],
    ["revised", (store) => store.revise("a", { source, target: { kind: "other" } })],
  ])("is %s only after the recording", (_, change) =>
    withPlace(async (place) => {
      const [one, two] = [await place.open(), await place.open()];
      await triggers(one).subscribe({
        key: "a",
        source,
        target: { kind: "build" },
      });
      const barrier = await Barrier.raise(place);
      const record = triggers(one).record.prepare({
        key: "o",
        source,
        payload: 1,
        occurredAt: 1,
      });
      const ended: string[] = [];
      const recorded = one
        .write("record", () => driveUntil(barrier, "INSERT INTO holdfast_process", record()), {
          isolation: "readCommitted",
        })
        .then((outcome) => {
          ended.push("recorded");
          return outcome;
        });
      await barrier.stopped(1);
      const changed = change(triggers(two)).then(() => ended.push("changed"));
      await Promise.race([changed, blocked({ place })]);
      // Only the server knows the order of two commits: each has a connection of its own.
      expect(ended).toEqual([]);
      await barrier.lift();
      const { deliveries } = await recorded;
      await changed;
      expect(deliveries).toMatchObject([{ subscription: { revision: 1 }, refusal: null }]);
    }),
  );
});
