import { describe, expect, test } from "vitest";
import type { Database } from "../../src/stores/database.ts";
import { rejection, withPlace } from "./backend.ts";
import type { Backend, PlaceOptions } from "./backend.ts";
import { addNote, createNoteTable, noteCount, noteHalves } from "./notes.ts";

export function waitsSuite(backend: Backend): void {
  const onNotes =
    (body: (database: Database) => Promise<void>, options?: PlaceOptions) =>
    () =>
      withPlace(backend, async (place) => {
        const database = await place.open(options);
        await database.write("tables", createNoteTable);
        await body(database);
      });

  describe("giving up", () => {
    test(
      "a signal that has aborted already cancels the write",
      onNotes(async (database) => {
        const reason = new Error("changed my mind");
        const error = await rejection(
          database.write(
            addNote,
            { id: "a" },
            { signal: AbortSignal.abort(reason) },
          ),
        );
        expect(error).toMatchObject({ code: "ABORTED", cause: reason });
        expect(await noteCount(database)).toBe(0);
      }),
    );

    test(
      "aborting a write that no transaction has taken cancels it and no other",
      onNotes(async (database) => {
        const abort = new AbortController();
        const kept = database.write(addNote, { id: "kept" });
        const cancelled = rejection(
          database.write(
            addNote,
            { id: "cancelled" },
            { signal: abort.signal },
          ),
        );
        const alsoKept = database.write(addNote, { id: "later" });
        abort.abort();
        expect(await cancelled).toMatchObject({ code: "ABORTED" });
        await Promise.all([kept, alsoKept]);
        expect(await noteHalves(database)).toBe("kept1 kept2 later1 later2");
      }),
    );

    test(
      "aborting after the write resolved changes nothing",
      onNotes(async (database) => {
        const abort = new AbortController();
        await database.write(
          addNote,
          { id: "a" },
          { signal: abort.signal, timeout: "1 hour" },
        );
        abort.abort();
        expect(await noteCount(database)).toBe(2);
      }),
    );

    test(
      "a timeout that is no duration is refused with the accepted forms",
      onNotes(async (database) => {
        const error = await rejection(
          database.write(addNote, { id: "a" }, { timeout: "soon" as "1s" }),
        );
        expect(error).toMatchObject({ code: "DURATION_INVALID" });
        expect(await noteCount(database)).toBe(0);
      }),
    );

    test(
      "an aborted read rejects",
      onNotes(async (database) => {
        const error = await rejection(
          database.read(
            "count",
            function* () {
              return 1;
            },
            { signal: AbortSignal.abort() },
          ),
        );
        expect(error).toMatchObject({ code: "ABORTED" });
      }),
    );
  });

  describe("waiting", () => {
    test(
      "is measured for every transaction that writes, and not for reads",
      onNotes(async (database) => {
        const before = database.stats();
        for (const id of ["a", "b", "c"]) await database.write(addNote, { id });
        await noteCount(database);
        const { queueWaitMs, lockWaitMs, logHeldBack } = database.stats();
        expect(queueWaitMs.count - before.queueWaitMs.count).toBe(3);
        expect(queueWaitMs.p50).toBeGreaterThan(0);
        expect(queueWaitMs.max).toBeGreaterThanOrEqual(queueWaitMs.p99);
        // Nobody else is here.
        expect(lockWaitMs).toEqual({ count: 0, p50: 0, p99: 0, max: 0 });
        expect(logHeldBack).toBeUndefined();
      }),
    );
  });

  describe("a full queue", () => {
    test(
      "refuses one call too many, keeps the others, and has room again after them",
      onNotes(
        async (database) => {
          const calls = Array.from({ length: 12 }, (_, index) =>
            database.write(addNote, { id: `n${index}` }),
          );
          const settled = await Promise.allSettled(calls);
          const refused = settled.filter(
            (result) => result.status === "rejected",
          );
          expect(refused.length).toBeGreaterThan(0);
          for (const result of refused)
            expect(result.reason).toMatchObject({
              code: "QUEUE_FULL",
              retryable: true,
              details: { limit: 8 },
            });
          await database.writable();
          await database.write(addNote, { id: "after" });
          expect(await noteCount(database)).toBe(2 * (12 - refused.length + 1));
          expect(database.stats().queueDepth).toBe(0);
        },
        { queueCalls: 8 },
      ),
    );
  });
}
