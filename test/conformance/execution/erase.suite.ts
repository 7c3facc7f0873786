import { describe, expect, test } from "vitest";
import { rows as selected } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { maintenance } from "../../../src/stores/maintenance/maintenance.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onExecutions, refusal, T0 } from "./fixture.ts";
import { readTables } from "./tables.ts";
import type { ExecutionFixture } from "./fixture.ts";

const ok = { kind: "completed", value: "secret result" } as const;

/** A finished run with a finished child, with values in every place that takes one. */
async function ended({ store }: ExecutionFixture): Promise<void> {
  await store.create({
    id: "ada",
    function: "f",
    input: "secret input",
    tags: ["secret-tag"],
    metadata: { of: "secret metadata" },
    concurrencyKey: "secret-key",
  });
  await store.create({ id: "ada.n:x_1", function: "g", input: "secret child" });
  await store.signal("ada", "go", "secret signal");
  await store.setProgress("ada", "secret progress");
  await store.log("ada", [{ level: "info", message: "secret line", data: "secret data" }]);
  await store.finish("ada.n:x_1", 1, ok);
  await store.finish("ada", 1, ok);
}

/** All that the tables of executions hold, as one text. */
async function writtenIn(database: Database): Promise<string> {
  const logs = await database.read("logs", () =>
    selected(sql`SELECT * FROM holdfast_execution_log`),
  );
  return JSON.stringify([await readTables(database), logs]);
}

export function executionEraseSuite(backend: Backend): void {
  describe("erasing a run", () => {
    test(
      "leaves nothing that anybody gave, and a tombstone that keeps its id from being run again",
      onExecutions(backend, async (fixture) => {
        const { store, database, clock } = fixture;
        await store.create({ id: "bob", function: "f", input: "kept" });
        await ended(fixture);
        clock.advance(5);
        const { erasedAt, rows } = await store.erase("ada");
        expect(erasedAt).toBe(T0 + 5);
        expect(rows).toBeGreaterThan(5);
        expect(await writtenIn(database)).not.toMatch(/secret/);
        for (const call of [
          () => store.get("ada"),
          () => store.get("ada.n:x_1"),
          () => store.result("ada"),
          () => store.load("ada"),
          () => store.fork("ada", 0),
          () => store.cancel("ada"),
        ])
          expect(await refusal(fixture, call)).toBe("EXECUTION_NOT_FOUND");
        for (const call of [
          store.get,
          store.result,
          store.cancel,
          store.events,
          store.responses,
          store.logs,
          store.tree,
          (id: string) => store.log(id, [{ level: "info", message: "late" }]),
          (id: string) => store.backtrace(id, "last"),
        ])
          expect(await rejection(call("ada"))).toMatchObject({
            message: expect.stringContaining("Run ada was erased at"),
            details: { id: "ada", missing: "execution", erasedAt: T0 + 5 },
          });
        for (const draft of [
          { id: "ada", function: "f", input: "secret input" },
          { id: "ada", function: "other" },
        ])
          expect(await rejection(store.create(draft))).toMatchObject({
            code: "EXECUTION_ERASED",
            retryable: false,
            details: { id: "ada", erasedAt: T0 + 5 },
          });
        const fork = store.fork("bob", 0, { id: "ada" });
        expect(await rejection(fork)).toMatchObject({
          code: "EXECUTION_ERASED",
        });
        expect((await store.list()).items.map(({ id }) => id)).toEqual(["bob"]);
        expect((await store.count()).counts).toEqual([
          { function: "f", status: "pending", count: 1 },
        ]);
        expect((await maintenance(database).check()).damaged).toEqual([]);
      }),
    );

    test(
      "may be repeated, and is gone on with when it was interrupted",
      onExecutions(backend, async (fixture) => {
        const { store, database, clock } = fixture;
        await ended(fixture);
        const giveUp = new AbortController();
        const stopped = store.erase("ada", {
          rowsPerSlice: 1,
          signal: giveUp.signal,
          onProgress: () => giveUp.abort(),
        });
        expect(await rejection(stopped)).toMatchObject({ code: "ABORTED" });
        clock.advance(7);
        // A sweep that is to remove nothing by its policy ends it, as an erasure.
        await store.removeFinished({ olderThan: "10 days" });
        expect(await writtenIn(database)).not.toMatch(/secret/);
        expect(await store.erase("ada")).toEqual({ rows: 0, erasedAt: T0 });
        expect(await rejection(store.create({ id: "ada", function: "f" }))).toMatchObject({
          code: "EXECUTION_ERASED",
        });
        expect(await store.removeFinished({ olderThan: "10 days" })).toEqual({
          trees: 0,
          rows: 0,
          skipped: 0,
        });
      }),
    );

    test(
      "ends with retention, which frees the id",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await ended(fixture);
        await store.erase("ada");
        clock.advance(1_000);
        expect(await store.removeFinished({ olderThan: 500 })).toEqual({
          trees: 1,
          rows: 1,
          skipped: 0,
        });
        const { existed } = await store.create({ id: "ada", function: "f" });
        expect(existed).toBe(false);
      }),
    );

    test(
      "goes on with what retention had begun to remove, and leaves a tombstone",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await ended(fixture);
        clock.advance(1_000);
        const giveUp = new AbortController();
        await rejection(
          store.removeFinished(
            { olderThan: 1 },
            {
              rowsPerSlice: 1,
              signal: giveUp.signal,
              onProgress: () => giveUp.abort(),
            },
          ),
        );
        expect(await store.erase("ada")).toMatchObject({
          erasedAt: T0 + 1_000,
        });
        expect(await rejection(store.create({ id: "ada", function: "f" }))).toMatchObject({
          code: "EXECUTION_ERASED",
        });
      }),
    );

    test(
      "is refused for what has not ended, for a child, and for what there is not",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "open", function: "f" });
        await store.create({ id: "done", function: "f" });
        await store.create({ id: "done.n:x_1", function: "g" });
        await store.finish("done", 1, ok);
        for (const [id, code] of [
          ["open", "EXECUTION_UNFINISHED"],
          ["done", "EXECUTION_UNFINISHED"],
          ["done.n:x_1", "OPTION_INVALID"],
          ["nobody", "EXECUTION_NOT_FOUND"],
          ["", "ID_MALFORMED"],
        ] as const)
          expect(await refusal(fixture, () => store.erase(id))).toBe(code);
      }),
    );
  });
}
