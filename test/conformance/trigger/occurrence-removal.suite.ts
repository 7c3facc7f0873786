import { describe, expect, test } from "vitest";
import { run, sql } from "../../../src/kernel.ts";
import type { SubscriptionDraft } from "../../../src/triggers.ts";
import type { Backend } from "../backend.ts";
import { hour, inTriggers, monday, processIds, webhook, termsOf } from "./fixture.ts";
import type { InTriggers } from "./fixture.ts";
import { pastChecks } from "../past-checks.ts";

const draft: SubscriptionDraft = {
  key: "a",
  source: webhook,
  target: { kind: "build" },
};

/** SHA-256 of `holdfast:trigger-process:1:["p","webhook","github",…]`, computed elsewhere. */
const takenId = "trigger:0de82643efd43c21cd50b2c15b227354e5b8a261cfa96157712520b65ee83f9c";

export function occurrenceRemovalSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("an occurrence that is old", () => {
    againTests(fixture);
    removalTests(fixture);
  });
}

function againTests(fixture: InTriggers): void {
  test(
    "starts nothing twice when it was removed as old and is recorded again",
    fixture(async ({ mine, clock }) => {
      const { triggers } = mine;
      await triggers.subscribe(draft);
      const occurrence = { key: "o", source: webhook, payload: 1 };
      const first = await triggers.record(occurrence);
      clock.advance(hour);
      await mine.database.write("end", () =>
        run(
          sql`UPDATE holdfast_process SET status = 'completed', ended_sequence = 0, ended_at = 0`,
        ),
      );
      expect(await triggers.removeOccurrences({ olderThan: 0 })).toEqual({
        removed: 1,
        rows: 2,
        kept: 0,
      });
      const second = await triggers.record({
        ...occurrence,
        occurredAt: monday,
      });
      expect(second.kind).toBe("recorded");
      expect(second.deliveries).toEqual(first.deliveries);
      expect(await processIds(mine)).toHaveLength(1);
    }),
  );

  test(
    "is found again after its removal, pruned or not, though its time was not given and a subscription was revised; another's process is not",
    fixture(async ({ mine, clock }) => {
      const { triggers, processes } = mine;
      await triggers.subscribe(draft);
      await triggers.subscribe({ ...draft, key: "b" });
      const occurrence = { key: "o", source: webhook, payload: 1 };
      const first = await triggers.record(occurrence);
      for (const { process } of first.deliveries)
        await processes.complete(process ?? "", {
          kind: "completed",
          value: 1,
        });
      await triggers.revise("b", {
        source: webhook,
        target: { kind: "other" },
      });
      for (const after of ["the end", "pruning"]) {
        if (after === "pruning") await processes.prune({ olderThan: 0 });
        clock.advance(hour);
        await triggers.removeOccurrences({ olderThan: 0 });
        const { kind, deliveries } = await triggers.record(occurrence);
        expect(kind).toBe("recorded");
        expect(deliveries).toMatchObject(
          first.deliveries.map(({ process }) => ({ process, refusal: null })),
        );
      }
      expect(await processIds(mine)).toHaveLength(2);
      // The id of what "p" would start for "a", taken by somebody else.
      await processes.register({ id: takenId, kind: "build", input: "mine" });
      const { deliveries } = await triggers.record({ ...occurrence, key: "p" });
      expect(deliveries[0]).toMatchObject({
        process: null,
        refusal: { code: "PROCESS_CONFLICT" },
      });
    }),
  );

  test(
    "is another one after its removal when it is recorded with another payload or source",
    fixture(async ({ mine, clock }) => {
      const { triggers, processes } = mine;
      await triggers.subscribe(draft);
      const mail = { type: "mail", key: "m" };
      const started: (string | null | undefined)[] = [];
      for (const [payload, source] of [
        [1, webhook],
        [2, webhook],
        [2, mail],
        [1, webhook],
      ] as const) {
        await triggers.revise("a", { ...termsOf(draft), source });
        const occurrence = { key: "o", source, payload };
        const { kind, deliveries } = await triggers.record(occurrence);
        expect(kind).toBe("recorded");
        const { process } = deliveries[0] ?? {};
        started.push(process);
        const { input } = (await processes.get(process ?? "")) ?? {};
        expect(input).toMatchObject({ source, payload });
        await processes.complete(process ?? "", {
          kind: "completed",
          value: 1,
        });
        clock.advance(hour);
        await triggers.removeOccurrences({ olderThan: 0 });
      }
      expect(new Set(started).size).toBe(3);
      expect(started[3]).toBe(started[0]);
    }),
  );
}

function removalTests(fixture: InTriggers): void {
  test(
    "is kept when it is exactly as old as the policy, and removed a millisecond later",
    fixture(async ({ mine, clock }) => {
      const { triggers } = mine;
      await triggers.record({ key: "o", source: webhook });
      clock.advance(hour);
      const policy = { olderThan: hour };
      expect(await triggers.removeOccurrences(policy)).toEqual({ removed: 0, rows: 0, kept: 0 });
      clock.advance(1);
      expect(await triggers.removeOccurrences(policy)).toMatchObject({ removed: 1 });
    }),
  );

  test(
    "is removed when what it started has ended, in slices",
    fixture(async ({ mine, clock }) => {
      const { triggers, database } = mine;
      await triggers.subscribe(draft);
      for (let index = 0; index < 7; index += 1)
        await triggers.record({ key: `o${index}`, source: webhook });
      clock.advance(hour);
      await triggers.record({ key: "new", source: webhook });
      const { deliveries } = await triggers.occurrence("o3");
      await database.write("end", () =>
        run(sql`UPDATE holdfast_process SET status = 'completed', ended_sequence = 0, ended_at = 0
          WHERE id <> ${deliveries[0]?.process ?? ""}`),
      );
      const told: number[] = [];
      expect(
        await triggers.removeOccurrences(
          { olderThan: "30 min" },
          { rowsPerSlice: 4, onProgress: (soFar) => told.push(soFar.removed) },
        ),
      ).toEqual({ removed: 6, rows: 12, kept: 1 });
      expect(told).toEqual([2, 3, 5, 6]);
      const { items } = await triggers.occurrences();
      expect(items.map(({ key }) => key)).toEqual(["new", "o3"]);
    }),
  );

  test(
    "is removed in slices of so many rows, its deliveries counted; one that has more goes alone",
    fixture(async ({ mine, clock }) => {
      const { triggers, database } = mine;
      for (const key of ["a", "b", "c"]) await triggers.subscribe({ ...draft, key });
      for (const key of ["1", "2", "3", "4"]) await triggers.record({ key, source: webhook });
      clock.advance(hour);
      const busy = await triggers.occurrence("2");
      await database.write("end", () =>
        run(sql`UPDATE holdfast_process SET status = 'completed', ended_sequence = 0, ended_at = 0
          WHERE id <> ${busy.deliveries[2]?.process ?? ""}`),
      );
      const told: number[] = [];
      const onProgress = ({ rows }: { readonly rows: number }): void => void told.push(rows);
      expect(
        await triggers.removeOccurrences({ olderThan: 0 }, { rowsPerSlice: 5, onProgress }),
      ).toEqual({ removed: 3, rows: 12, kept: 1 });
      expect(told).toEqual([4, 8, 12]);
      // A row that makes no sense may belong to one that runs.
      for (const [status, sequence] of [
        ["weird", 0],
        ["completed", null],
        ["running", 0],
      ] as const) {
        await database.write("damage", () =>
          pastChecks(
            database,
            sql`UPDATE holdfast_process SET status = ${status}, ended_sequence = ${sequence}`,
          ),
        );
        expect(await triggers.removeOccurrences({ olderThan: 0 })).toMatchObject({
          removed: 0,
          kept: 1,
        });
      }
      await database.write("end", () =>
        run(sql`UPDATE holdfast_process SET status = 'failed', ended_sequence = 0`),
      );
      const options = { rowsPerSlice: 1 };
      expect(await triggers.removeOccurrences({ olderThan: 0 }, options)).toEqual({
        removed: 1,
        rows: 4,
        kept: 0,
      });
    }),
  );
}
