import { describe, expect, test } from "vitest";
import type { ExecutionEvent } from "../../../src/model/execution/event.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { appendEvents } from "../../../src/stores/execution/log/append.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { step } from "./execution-events.ts";
import { ann, byAnn, onExecutions, type ExecutionFixture } from "./fixture.ts";

const done = { kind: "completed", value: 1 } as const;

/** What an end says of its messages, however it is read. */
async function unreadOf({ store }: ExecutionFixture, id: string): Promise<number | undefined> {
  const [read, waited] = await Promise.all([store.result(id), store.waitForResult(id)]);
  expect(read).toEqual(waited);
  const { event } = await store.lastEvent(id);
  const counted = event.kind === "finished" ? event.unread : "no end";
  expect(read?.unread).toBe(counted);
  return read?.unread;
}

export function executionUnreadEndsSuite(backend: Backend): void {
  describe("the end of a run", () => {
    countTests(backend);
    pathTests(backend);
  });
}

function countTests(backend: Backend): void {
  test(
    "[RN5] counts the messages that were not taken by name",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      await store.create({ id: "a", function: "f" });
      for (const name of ["go", "go", "stop"]) await store.signal("a", name, 1);
      await store.receive("a", "go", 1);
      await store.finish("a", 2, done);
      expect(await unreadOf(fixture, "a")).toBe(2);
      // A recorded result may be given to another run.
      await store.create({ id: "b", function: "f" });
      await store.finish("b", 1, await store.waitForResult("a"));
      expect(await store.result("b")).toEqual(done);
    }),
  );

  test(
    "[RN5] without messages, or with all of them received, says nothing",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      for (const id of ["none", "taken", "seen"]) await store.create({ id, function: "f" });
      await store.finish("none", 1, done);
      await store.signal("taken", "go", 1);
      await store.receive("taken", "go", 1);
      await store.finish("taken", 2, done);
      // Replayed code was given the message before this step.
      await store.signal("seen", "go", 1);
      await store.append("seen", 1, [step("s", 1, 1, 1)]);
      await store.finish("seen", 2, done);
      for (const id of ["none", "taken", "seen"])
        expect(await unreadOf(fixture, id)).toBeUndefined();
    }),
  );

  test(
    "[RN5] counts what its code was given and did not take, and what came behind",
    onExecutions(backend, async (fixture) => {
      const { store, database, clock } = fixture;
      const context = executionContext(database, { clock });
      for (const [n, [seen, unread]] of [
        [0, undefined],
        [1, 1],
        [3, 2],
        [3, undefined],
      ].entries()) {
        const id = `r-${n}`;
        await store.create({ id, function: "f" });
        for (const name of ["go", "stop", "go"]) await store.signal(id, name, 1);
        const { key, nextVersion } = await store.lock(id, 1, byAnn);
        const end: ExecutionEvent = {
          ...context.values.finished(done),
          ...(seen !== undefined && { seen }),
          ...(unread !== undefined && { unread }),
        };
        const input = {
          id: id as never,
          key,
          version: nextVersion,
          at: clock.now(),
          events: [end],
          fence: ann,
        };
        const first = await database.write(appendEvents(context), input);
        expect(await database.write(appendEvents(context), input)).toEqual(first);
        const all = [3, 3, 2, undefined][n];
        expect([first.unread, await unreadOf(fixture, id)]).toEqual([all, all]);
      }
    }),
  );

  test(
    "[RN5] counts messages that an earlier pass has left, but not those that it has read",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      await store.create({ id: "a", function: "f" });
      for (let n = 1; n <= 4; n += 1) await store.signal("a", "go", n);
      await store.append("a", 1, [step("s", 1, 1, 4)]);
      await store.append("a", 2, [{ kind: "continued", input: 1, seen: 4, unread: [2, 3] }]);
      await store.signal("a", "stop", 5);
      await store.finish("a", 3, done);
      expect(await unreadOf(fixture, "a")).toBe(3);
    }),
  );

  test(
    "[RN5] does not count Holdfast's own signals, whose names nobody else may send",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      await store.create({ id: "a", function: "f" });
      for (const name of ["holdfast/wake", "holdfast/"])
        expect(await rejection(store.signal("a", name, 1))).toMatchObject({
          code: "NAME_INVALID",
          details: { name },
        });
      await store.signal("a", "holdfast-wake", 1);
      await store.finish("a", 1, done);
      expect(await unreadOf(fixture, "a")).toBe(1);
    }),
  );
}

function pathTests(backend: Backend): void {
  test(
    "[RN5] counts them whichever way it comes: many at once, by force, by a deadline, before it began",
    onExecutions(backend, async (fixture) => {
      const { store, clock } = fixture;
      const ids = Array.from({ length: 12 }, (_, n) => `m-${n}`);
      for (const id of [...ids, "force", "cancel"]) await store.create({ id, function: "f" });
      await store.create({ id: "late", function: "f", deadline: 5 });
      for (const id of [...ids.slice(6), "force", "cancel", "late"])
        await store.signal(id, "go", 1);
      const ended = await Promise.all(ids.map((id) => store.finish(id, 1, done)));
      expect(ended.map(({ unread }) => unread)).toEqual(ids.map((_, n) => (n < 6 ? undefined : 1)));
      await store.cancel("force", { force: true });
      await store.cancel("cancel");
      clock.advance(10);
      await store.expireTimers();
      for (const id of [...ids.slice(6), "force", "cancel", "late"])
        expect(await unreadOf(fixture, id)).toBe(1);
    }),
  );
}
