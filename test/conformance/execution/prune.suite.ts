import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { expectSound } from "../sound.ts";
import { childRequested, joinNext, step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  bob,
  byAnn,
  byBob,
  dump,
  kindsOf,
  logOf,
  onExecutions,
  refusal,
  responsesOf,
  standing,
  stateOfExecution,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";
import { result } from "./parent.ts";

function continued(seen?: number, unread?: readonly number[]): GivenEvent {
  return {
    kind: "continued",
    input: "new",
    ...(seen !== undefined && { seen }),
    ...(unread && { unread }),
  };
}

const month = 31 * 24 * 60 * 60 * 1_000;

/**
 * Run "a": 1 locked, 2–3 two children, 4 a question, 5–6 steps, 7 started anew,
 * 8 a step. Its first child had a child and has ended, the second runs on;
 * signals 1 and 3 were read, 2 was not; 4 is the end of the first child.
 */
async function continuedRun({ store, clock }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a", function: "f", input: "old" });
  await store.lock("a", 1, { ...byAnn, codeVersion: "v7" });
  for (const key of ["1", "2", "3"]) await store.signal("a", "go", key, { key });
  await store.append(
    "a",
    2,
    [
      childRequested("n:x", "a.n:x_1", "g"),
      childRequested("n:x", "a.n:x_2", "g"),
      joinNext("n:x", T0),
    ],
    {
      children: [
        { id: "a.n:x_1", function: "g" },
        { id: "a.n:x_2", function: "g" },
      ],
    },
  );
  await store.append("a.n:x_1", 1, [childRequested("n:y", "a.n:x_1.n:y_1", "h")], {
    children: [{ id: "a.n:x_1.n:y_1", function: "h" }],
  });
  await store.finish("a.n:x_1.n:y_1", 1, result);
  await store.finish("a.n:x_1", 2, result);
  await store.append("a", 5, [
    step("one", "x", 1, 4),
    step("two", "y", 2, 4),
    continued(4, [2]),
    step("three", "z", 1, 2),
  ]);
  await store.addBacktraces("a", [
    { from: 0, to: 1, stack: "at start" },
    { from: 5, to: 7, stack: "at steps" },
    { from: 8, to: 9, stack: "at three" },
  ]);
  clock.advance(month);
}

export function executionPruneSuite(backend: Backend): void {
  describe("pruning the history before a new start", () => {
    test(
      "[R14] removes its events, the responses it was given and its children that have ended, and nothing that the run needs",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await continuedRun(fixture);
        const before = await stateOfExecution(database, "a");
        const loaded = await store.load("a");
        expect(await store.pruneHistory("a")).toEqual({
          events: 5,
          responses: 3,
          trees: 1,
          skipped: 0,
        });
        // The last lock stays: it tells who held it, and how it is retried.
        expect((await logOf(fixture, "a")).map(([version, kind]) => [version, kind])).toEqual([
          [0, "created"],
          [1, "locked"],
          [7, "continued"],
          [8, "stepFinished"],
        ]);
        expect((await responsesOf(fixture, "a")).map(([seq]) => seq)).toEqual([2]);
        expect((await store.tree("a")).items.map(({ id }) => id)).toEqual(["a", "a.n:x_2"]);
        expect(await stateOfExecution(database, "a")).toEqual(before);
        expect(await store.load("a")).toEqual(loaded);
        expect((await store.backtrace("a", { version: 8 })).stack).toBe("at three");
        expect((await rejection(store.backtrace("a", { version: 5 }))).code).toBe(
          "BACKTRACE_NOT_FOUND",
        );
        await expectSound(database);
        // Again there is nothing left to do.
        const all = await dump(fixture);
        expect(await store.pruneHistory("a")).toEqual({
          events: 0,
          responses: 0,
          trees: 0,
          skipped: 0,
        });
        expect(await dump(fixture)).toEqual(all);
      }),
    );

    test(
      "[R14] goes in slices, each of which leaves a sound log, and goes on where it was stopped",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await continuedRun(fixture);
        const loaded = await store.load("a");
        const total = { events: 0, responses: 0, trees: 0, skipped: 0 };
        for (let slices = 0; ; slices += 1) {
          const stop = new AbortController();
          const call = store.pruneHistory("a", {
            rowsPerSlice: 1,
            signal: stop.signal,
            onProgress: (report) => {
              for (const name of ["events", "responses", "trees"] as const)
                total[name] += report[name];
              stop.abort();
            },
          });
          const outcome = await call.then(
            () => "done",
            (error: unknown) => (error as { code: string }).code,
          );
          await expectSound(database);
          expect(await store.load("a")).toEqual(loaded);
          if (outcome === "done") break;
          expect(outcome).toBe("ABORTED");
          expect(slices).toBeLessThan(40);
        }
        expect(total).toEqual({
          events: 5,
          responses: 3,
          trees: 1,
          skipped: 0,
        });
      }),
    );

    test(
      "[R14] does all in one call, however small its slices are",
      onExecutions(backend, async (fixture) => {
        await continuedRun(fixture);
        expect(await fixture.store.pruneHistory("a", { rowsPerSlice: 1 })).toEqual({
          events: 5,
          responses: 3,
          trees: 1,
          skipped: 0,
        });
      }),
    );

    test(
      "[R14] lets no signal be lost that comes between two slices",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.signal("a", "go", 1);
        await store.receive("a", "go", 1);
        await store.append("a", 2, [continued()]);
        clock.advance(month);
        const stop = new AbortController();
        await rejection(
          store.pruneHistory("a", {
            rowsPerSlice: 1,
            signal: stop.signal,
            onProgress: () => stop.abort(),
          }),
        );
        // The signal is gone, and the event is still there that took it.
        expect(await responsesOf(fixture, "a")).toEqual([]);
        expect(await kindsOf(fixture, "a")).toBe("created signalReceived continued");
        await store.signal("a", "go", 2);
        expect(await store.receive("a", "go", 3)).toMatchObject({
          seq: 2,
          value: 2,
        });
      }),
    );

    test(
      "[R14] leaves lists, single reads and waits that cope: what is gone is passed over or not found",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        for (let n = 0; n < 260; n += 1) await store.signal("a", "go", n);
        let version = 1;
        for (let n = 0; n < 130; n += 1)
          version = (await store.append("a", version, [step(`s${n}`)])).nextVersion;
        await store.append("a", version, [continued(260, [255])]);
        clock.advance(month);
        const late = store.waitForResponses("a", 260);
        await store.pruneHistory("a");
        await store.signal("a", "go", "late", { key: "late" });
        const versions = async (options: object) => {
          const page = await store.events("a", options);
          return [page.items.map((item) => item.version), page.next];
        };
        expect(await versions({})).toEqual([[0], expect.any(String)]);
        const { next } = await store.events("a");
        expect(await versions({ after: next })).toEqual([[131], undefined]);
        expect(await versions({ from: 5 })).toEqual([[131], undefined]);
        expect(await versions({ newestFirst: true, limit: 1 })).toEqual([
          [131],
          expect.any(String),
        ]);
        expect(await versions({ newestFirst: true, from: 100 })).toEqual([[0], undefined]);
        const seqs = async (options: object) =>
          (await store.responses("a", options)).items.map(({ seq }) => seq);
        expect(await seqs({})).toEqual([255, 261]);
        expect(await seqs({ from: 256 })).toEqual([261]);
        expect(await seqs({ backward: true, from: 260 })).toEqual([255]);
        expect(await seqs({ unread: true })).toEqual([255, 261]);
        const waited = await store.waitForResponses("a", 0);
        expect(waited.map(({ seq }) => seq)).toEqual([255, 261]);
        expect((await late).map(({ seq }) => seq)).toEqual([261]);
        const missing = await rejection(store.event("a", 7));
        expect(missing.code).toBe("EXECUTION_NOT_FOUND");
        expect(missing.details).toMatchObject({ missing: "event", version: 7 });
        expect(await store.event("a", 0)).toMatchObject({ version: 0 });
      }),
    );

    test(
      "[R14] lets it be copied from its new start on, and at its creation, but from nowhere between",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await continuedRun(fixture);
        await store.fork("a", 8, { id: "whole" });
        await store.pruneHistory("a");
        await store.fork("a", 8, { id: "b" });
        const [one, other] = await Promise.all([store.load("whole"), store.load("b")]);
        expect({ ...other, id: one.id, key: one.key }).toEqual(one);
        // A copy of the copy has the same gap.
        await store.fork("b", 7, { id: "c" });
        expect(await kindsOf(fixture, "c")).toBe("created locked continued forked");
        for (const id of ["a", "b", "c"])
          for (const version of [1, 6]) {
            expect(await refusal(fixture, () => store.fork(id, version))).toBe(
              "FORK_POINT_INVALID",
            );
            expect((await rejection(store.fork(id, version))).details).toMatchObject({
              prunedBefore: 7,
            });
          }
        await store.fork("a", 0, { id: "anew" });
        expect(await store.load("anew")).toMatchObject({
          input: "old",
          history: [],
          responses: [],
        });
        // Nothing is missing there, so it can be copied itself.
        await store.fork("anew", 1, { id: "anew-again" });
        await store.finish("a", 9, {
          kind: "failed",
          error: { name: "Error", message: "no" },
        });
        await store.retry("a", { id: "again" });
        expect(await store.load("again")).toMatchObject({
          input: "new",
          unreadSignals: [{ seq: 2 }],
          history: [{ version: 8 }],
        });
        await expectSound(database);
      }),
    );

    test(
      "[R14] lets it be copied however long its history was",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await continuedRun(fixture);
        await store.pruneHistory("a");
        // As if a million events had gone.
        const gone = 1_000_000;
        await database.write("as if", function* () {
          yield* run(sql`
            UPDATE holdfast_execution_event SET version = version + ${gone} WHERE version >= 7
              AND execution = (SELECT key FROM holdfast_execution WHERE id = 'a')`);
          yield* run(sql`
            UPDATE holdfast_execution SET version = version + ${gone}, history_from = history_from + ${gone},
              pruned_before = pruned_before + ${gone} WHERE id = 'a'`);
        });
        await store.fork("a", gone + 8, { id: "b" });
        expect(await store.load("b")).toMatchObject({
          input: "new",
          history: [{ version: gone + 8 }],
        });
        await expectSound(database);
      }),
    );

    test(
      "[R14] leaves children that run on or answered late, until nobody refers to them",
      onExecutions(backend, async (fixture) => {
        const { store, database, clock } = fixture;
        await continuedRun(fixture);
        await store.finish("a.n:x_2", 1, result);
        expect(await store.pruneHistory("a")).toMatchObject({ trees: 1 });
        // Its answer came after the new start, and is among the responses of the run.
        expect((await store.responses("a")).items).toMatchObject([
          { seq: 2 },
          { seq: 5, response: { child: "a.n:x_2", result } },
        ]);
        await store.append("a", 9, [continued(5, [])]);
        clock.advance(month);
        expect(await store.pruneHistory("a")).toEqual({
          events: 2,
          responses: 2,
          trees: 1,
          skipped: 0,
        });
        expect((await store.tree("a")).items).toHaveLength(1);
        await expectSound(database);
      }),
    );

    test(
      "[R14] skips a child below which something runs, or has a process",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "a.n:x_1", function: "g" });
        await store.create({ id: "a.n:x_1.n:y_1", function: "h" });
        await store.finish("a.n:x_1", 1, result);
        await store.append("a", 1, [continued(1, [])]);
        expect(await store.pruneHistory("a")).toEqual({
          events: 0,
          responses: 1,
          trees: 0,
          skipped: 1,
        });
        expect(await store.get("a.n:x_1")).toMatchObject({ id: "a.n:x_1" });
        await expectSound(database);
      }),
    );

    test(
      "[R14] hides a child whose removal was begun, with all below it, until it is gone",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await continuedRun(fixture);
        const stop = new AbortController();
        let slices = 0;
        await rejection(
          store.pruneHistory("a", {
            rowsPerSlice: 3,
            signal: stop.signal,
            // Four slices for 3 responses, 2 rows of backtraces and 5 events; the fifth begins with the child.
            onProgress: () => {
              slices += 1;
              if (slices === 5) stop.abort();
            },
          }),
        );
        for (const id of ["a.n:x_1", "a.n:x_1.n:y_1"]) {
          expect((await rejection(store.get(id))).code).toBe("EXECUTION_NOT_FOUND");
          expect((await rejection(store.fork(id, 0))).code).toBe("EXECUTION_NOT_FOUND");
        }
        expect((await rejection(store.create({ id: "a.n:x_1", function: "g" }))).code).toBe(
          "EXECUTION_BEING_REMOVED",
        );
        await expectSound(database);
        // Retention goes on with it too.
        expect(await store.removeFinished({ olderThan: month * 12 })).toMatchObject({ trees: 1 });
        expect(await store.pruneHistory("a")).toMatchObject({ trees: 0 });
        await expectSound(database);
      }),
    );

    test(
      "[R14] remembers the keys of signals that were read, for 30 days or as long as it is told",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        for (const key of ["1", "2"]) await store.signal("a", "go", 1, { key });
        await store.receive("a", "go", 1);
        await store.append("a", 2, [continued(2, [])]);
        clock.advance(month / 2);
        expect(await store.pruneHistory("a")).toMatchObject({ responses: 0 });
        expect(await store.signal("a", "go", 1, { key: "1" })).toEqual({
          seq: 1,
          existed: true,
        });
        expect((await store.load("a")).unreadSignals).toEqual([]);
        expect(await store.pruneHistory("a", { signalMemory: "1 day" })).toMatchObject({
          responses: 2,
        });
        // By now it is another one, behind all that there were.
        expect(await store.signal("a", "go", 1, { key: "1" })).toEqual({
          seq: 3,
          existed: false,
        });
        expect(await store.receive("a", "go", 3)).toMatchObject({ seq: 3 });
      }),
    );

    test(
      "[R14] changes nothing for repeated appends and fences of what is left",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, { holder: bob, lease: 5 });
        await store.append("a", 2, [step("before")], { fence: bob });
        await store.unlock("a", 3, { holder: bob, reason: "r" });
        await store.lock("a", 4, byAnn);
        const append = () => store.append("a", 5, [continued(), waiting(0, T0)], { fence: ann });
        const first = await append();
        await store.pruneHistory("a");
        clock.advance(1);
        expect(await append()).toEqual(first);
        expect(
          await refusal(fixture, () =>
            store.append("a", 5, [continued(), waiting(0, T0)], { fence: bob }),
          ),
        ).toBe("VERSION_CONFLICT");
        await store.append("a", 7, [step("after")], { fence: ann });
        expect((await standing(fixture, "a")).version).toBe(7);
      }),
    );

    test(
      "[R14] does nothing to a run that was never started anew, and needs one that exists",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [step("one")]);
        expect(await store.pruneHistory("a")).toEqual({
          events: 0,
          responses: 0,
          trees: 0,
          skipped: 0,
        });
        expect(await refusal(fixture, () => store.pruneHistory("b"))).toBe("EXECUTION_NOT_FOUND");
        expect(await kindsOf(fixture, "a")).toBe("created stepFinished");
      }),
    );

    test(
      "[R14] lets retention remove what is left",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await continuedRun(fixture);
        await store.pruneHistory("a");
        await store.lock("a.n:x_2", 1, byBob);
        await store.finish("a.n:x_2", 2, result);
        await store.finish("a", 9, result);
        clock.advance(10);
        expect(await store.removeFinished({ olderThan: 1 })).toMatchObject({
          trees: 1,
        });
        expect((await dump(fixture)).flat()).toEqual([]);
      }),
    );
  });
}
