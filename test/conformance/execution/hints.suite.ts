import { describe, expect, test } from "vitest";
import type { Database } from "../../../src/sql/database.ts";
import { pendingWork, runInterrupted, timerSet } from "../../../src/stores/execution/topics.ts";
import type { Backend } from "../backend.ts";
import { step } from "./execution-events.ts";
import { ann, byAnn, onExecutions } from "./fixture.ts";

/** The changes of a topic that are told from now on, by their keys. */
function heard(database: Database, topic: string, key?: string): string[] {
  const keys: string[] = [];
  database.subscribe(
    (hint) => {
      if (hint.kind === "change") keys.push(hint.key);
    },
    [{ operation: topic, key }],
  );
  return keys;
}

/** Whom the log tells what. */
export function executionHintsSuite(backend: Backend): void {
  describe("whoever runs an execution", () => {
    test(
      "[R16] is told by its id when it is paused and unpaused, parked and unparked, or asked to cancel",
      onExecutions(backend, async ({ store, database, clock }) => {
        const told = heard(database, runInterrupted, "a");
        const toldOfAll = heard(database, runInterrupted);
        const saysSo = async (change: () => Promise<unknown>) => {
          told.length = 0;
          await change();
          return told.length;
        };
        for (const id of ["a", "b", "late"])
          await store.create({ id, function: "f", deadline: 800 });
        expect(await saysSo(() => store.pause("a"))).toBe(1);
        expect(await saysSo(() => store.pause("a"))).toBe(0);
        expect(await saysSo(() => store.unpause("a"))).toBe(1);
        await store.lock("a", 3, byAnn);
        const parked = {
          kind: "parked",
          code: "X",
          reason: "x",
          codeVersion: null,
        } as const;
        expect(await saysSo(() => store.append("a", 4, [parked]))).toBe(1);
        expect(await saysSo(() => store.unpark("a"))).toBe(1);
        await store.lock("a", 6, byAnn);
        expect(await saysSo(() => store.cancel("a"))).toBe(1);
        await store.lock("late", 1, byAnn);
        await store.append("late", 2, [step("one")], { fence: ann });
        clock.advance(800);
        await store.expireTimers();
        // The other one never began, and has ended.
        expect(toldOfAll.filter((id) => id !== "a")).toEqual(["late"]);
      }),
    );

    test(
      "[R16] hears no interruption in what it appends itself, nor in its end",
      onExecutions(backend, async ({ store, database }) => {
        const told = heard(database, runInterrupted);
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [step("one")], { fence: ann });
        await store.finish("a", 3, { kind: "completed", value: 1 });
        expect(told).toEqual([]);
      }),
    );
  });

  describe("what is created locked", () => {
    test(
      "[R16] is due to nobody, and its lock and deadline are still watched",
      onExecutions(backend, async ({ store, database }) => {
        const due = heard(database, pendingWork);
        const timed = heard(database, timerSet);
        await store.createLocked({ id: "a", function: "f" }, byAnn);
        await store.createLocked({ id: "b", function: "f", deadline: 5_000 }, byAnn);
        // Once for a lock, and for a deadline.
        expect(timed).toEqual(["a", "b", "b"]);
        expect(due).toEqual([]);
        await store.create({ id: "c", function: "f" });
        expect(due).toEqual(["f"]);
      }),
    );
  });
}
