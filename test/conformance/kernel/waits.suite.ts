import { describe, expect, test } from "vitest";
import type { Database } from "../../../src/kernel.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend, PlaceOptions } from "../backend.ts";
import { addNote, createNoteTable, noteCount, noteHalves } from "../notes.ts";

export function waitsSuite(backend: Backend): void {
  const onNotes = (body: (database: Database) => Promise<void>, options?: PlaceOptions) => () =>
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
          database.write(addNote, { id: "a" }, { signal: AbortSignal.abort(reason) }),
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
          database.write(addNote, { id: "cancelled" }, { signal: abort.signal }),
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
        await database.write(addNote, { id: "a" }, { signal: abort.signal, timeout: "1 hour" });
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

  describe("options of a call", () => {
    const unknown = { timout: 5 } as { timeout?: number };
    test.each<[string, (database: Database) => Promise<unknown>, readonly string[]]>([
      ["write", (database) => database.write(addNote, { id: "a" }, unknown), ["signal", "timeout"]],
      [
        "read",
        (database) =>
          database.read(
            "one",
            function* () {
              return 1;
            },
            unknown,
          ),
        ["signal", "timeout"],
      ],
      ["writable", (database) => database.writable(unknown), ["signal", "timeout"]],
      ["close", (database) => database.close(unknown), ["timeout"]],
    ])("%s refuses one it does not know, and names those it does", (_, call, known) =>
      onNotes(async (database) => {
        const error = await rejection(call(database));
        expect(error).toMatchObject({
          code: "OPTION_INVALID",
          details: { option: "timout" },
        });
        for (const name of known) expect(error.message).toContain(name);
        // Nothing was done, and nothing closed.
        expect(await noteCount(database)).toBe(0);
      })(),
    );

    test.each<[string, unknown, string]>([
      ["a number for its options", 5_000, "5000"],
      ["null for its options", null, "null"],
      ["a controller for its signal", { signal: new AbortController() }, "controller.signal"],
    ])("%s is refused", (_, options, told) =>
      onNotes(async (database) => {
        const error = await rejection(database.write(addNote, { id: "a" }, options as object));
        expect(error).toMatchObject({ code: "OPTION_INVALID" });
        expect(error.message).toContain(told);
        expect(await noteCount(database)).toBe(0);
      })(),
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
          const refused = settled.filter((result) => result.status === "rejected");
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

  describe("a loop of reads", () => {
    test(
      "lets the timers of the process fire, whatever it waits for",
      onNotes(async (database) => {
        let isDone = false;
        setTimeout(() => {
          isDone = true;
        }, 1);
        let reads = 0;
        // As people write it: while (!(await isDone())) {}
        for (; !isDone && reads < 50_000; reads += 1) await noteCount(database);
        expect(isDone).toBe(true);
      }),
    );
  });
}
