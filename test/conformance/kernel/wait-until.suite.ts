import { describe, expect, test } from "vitest";
import { executions } from "../../../src/executions.ts";
import { waitUntil } from "../../../src/stores/wait.ts";
import { create, mail } from "../execution/awaited-executions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { isOpen, waitFixture } from "../wait-fixture.ts";

/** A day, so that no test can end by its timeout. */
const timeout = "1 day";

export function waitUntilSuite(backend: Backend): void {
  const fixture = waitFixture(backend);

  describe("giving up a wait", () => {
    test(
      "by a signal ends it at once, with the reason",
      fixture(async ({ database, watched }) => {
        await create(database, "a");
        const abort = new AbortController();
        const reason = new Error("changed my mind");
        const waiting = rejection(
          executions(database).waitForResult("a", {
            signal: abort.signal,
            timeout,
          }),
        );
        await watched.asleep();
        abort.abort(reason);
        const error = await waiting;
        expect(error).toMatchObject({ code: "ABORTED", cause: reason });
        expect(error.message).toContain("the result of run a");
      }),
    );

    test(
      "also while it looks, and before it does",
      fixture(async ({ database, watched }) => {
        await create(database, "a");
        const abort = new AbortController();
        const { signal } = abort;
        const waiting = rejection(executions(database).waitForResult("a", { signal }));
        abort.abort();
        expect(await waiting).toMatchObject({ code: "ABORTED" });
        await watched.asleep();
        const { reads } = watched;
        expect(await rejection(executions(database).waitForResult("a", { signal }))).toMatchObject({
          code: "ABORTED",
        });
        expect(watched.reads).toBe(reads);
      }),
    );

    test(
      "with a timeout that is no duration is refused",
      fixture(async ({ database }) => {
        expect(
          await rejection(
            executions(database).waitForResult("a", {
              timeout: "soon" as "1s",
            }),
          ),
        ).toMatchObject({ code: "DURATION_INVALID" });
      }),
    );

    test(
      "by a timeout does not take as long as a database that does not answer",
      fixture(async ({ database, clock }) => {
        let looks = 0;
        const waiting = rejection(
          waitUntil(
            database,
            {
              what: "an answer",
              interests: [],
              clock,
              look() {
                looks += 1;
                return new Promise(() => undefined);
              },
            },
            { timeout: "3s" },
          ),
        );
        clock.advance(3_999);
        expect(await isOpen(waiting)).toBe(true);
        clock.advance(1);
        const error = await waiting;
        expect(error).toMatchObject({ code: "DEADLINE_EXCEEDED" });
        expect(error.message).toContain("the database has not answered");
        expect(looks).toBe(1);
      }),
    );

    test(
      "is what a closing database does for everybody",
      fixture(async ({ database, watched }) => {
        await create(database, "a", { scheduledAt: 5_000 });
        const waits = [
          executions(database).waitForResult("a"),
          executions(database).waitForResponses("a", 0),
          executions(database).waitForPending([mail]),
        ].map((waiting) => rejection(waiting));
        await watched.asleep();
        await database.close();
        for (const error of await Promise.all(waits))
          expect(error).toMatchObject({ code: "DATABASE_CLOSED" });
        expect(await rejection(executions(database).waitForResult("a"))).toMatchObject({
          code: "DATABASE_CLOSED",
        });
      }),
    );
  });

  describe("any wait", () => {
    test(
      "looks once at a time, and once more for all that it heard meanwhile",
      fixture(async ({ database }) => {
        let looks = 0;
        let [atOnce, atOnceMax] = [0, 0];
        const busy = (async () => {
          for (let n = 0; n < 10; n += 1) await create(database, `n${n}`);
        })();
        await waitUntil(database, {
          what: "the second look",
          interests: [{ operation: "createExecution" }],
          async look() {
            looks += 1;
            atOnce += 1;
            atOnceMax = Math.max(atOnceMax, atOnce);
            await busy;
            atOnce -= 1;
            return looks === 1 ? { isThere: false } : { isThere: true, value: looks };
          },
        });
        expect({ looks, atOnceMax }).toEqual({ looks: 2, atOnceMax: 1 });
      }),
    );

    test(
      "ends with the error of a look that fails, and does not look again",
      fixture(async ({ database, watched }) => {
        let looks = 0;
        // Listened to from the start: the hint may be faster than the answer.
        const waiting = rejection(
          waitUntil(database, {
            what: "a look that fails",
            interests: [{ operation: "createExecution" }],
            async look() {
              looks += 1;
              if (looks === 2) throw new Error("a look failed");
              await database.read("look", function* () {});
              return { isThere: false };
            },
          }),
        );
        await watched.asleep();
        await create(database, "b");
        expect((await waiting).message).toBe("a look failed");
        await create(database, "c");
        expect(looks).toBe(2);
      }),
    );
  });
}
