import { describe, expect, test } from "vitest";
import { createHeads } from "./log.ts";
import { rejection } from "../conformance/backend.ts";
import { until, withPlace } from "./place.ts";

describe("whether another process lives", () => {
  test("is known while the server holds its lock, and unknown without", () =>
    withPlace(async (place) => {
      const mine = await place.open();
      const theirs = await place.open();
      const { owner } = theirs;
      expect(await mine.liveness(mine.owner)).toBe("alive");
      // A write makes the session that holds the lock, if nothing else has.
      await createHeads(theirs, 0);
      await until(async () => (await mine.liveness(owner)) === "alive");
      await theirs.close();
      await until(async () => (await mine.liveness(owner)) === "unknown");
      await mine.close();
      expect(await rejection(mine.liveness(owner))).toMatchObject({
        code: "DATABASE_CLOSED",
      });
    }));

  test("is known again after its connections were lost", () =>
    withPlace(async (place) => {
      const mine = await place.open();
      const theirs = await place.open({ pollInterval: 10 });
      await createHeads(theirs, 0);
      const lives = async (): Promise<boolean> => (await mine.liveness(theirs.owner)) === "alive";
      await until(lives);
      await place.shell()`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = ${place.app} AND pid <> pg_backend_pid()`;
      await until(lives);
      expect(await theirs.liveness(theirs.owner)).toBe("alive");
    }));

  test("is unknown of an owner nobody has heard of", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const stranger = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAV" as never;
      expect(await database.liveness(stranger)).toBe("unknown");
    }));
});
