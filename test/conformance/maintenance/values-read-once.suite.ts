import { describe, expect, test } from "vitest";
import { maintenance } from "../../../src/blobs.ts";
import { awaitEvents, effects } from "../../../src/effects.ts";
import { executions } from "../../../src/executions.ts";
import { processes } from "../../../src/processes.ts";
import { leases, queue, sessions } from "../../../src/sessions.ts";
import type { Database } from "../../../src/kernel.ts";
import { triggers } from "../../../src/triggers.ts";
import { withPlace, type Backend } from "../backend.ts";

const turn = { kind: "turn", id: "t1" } as const;

/** A value whose getter gives another number each time, as a clock would. */
function lively(): { readonly n: number } {
  let reads = 0;
  return {
    get n() {
      reads += 1;
      return reads;
    },
  };
}

/** What is stored of a lively value is what is handed on: its hash is not of another reading. */
export function valuesReadOnceSuite(backend: Backend): void {
  const on = (body: (database: Database) => Promise<void>) => () =>
    withPlace(backend, async (place) => {
      const database = await place.open();
      await body(database);
      expect((await maintenance(database).check()).damaged).toEqual([]);
    });
  const stored = { n: expect.any(Number) };

  describe("a value that is another one each time it is read", () => {
    test(
      "is read again as it was stored: inputs, signals and results of runs",
      on(async (database) => {
        const log = executions(database);
        await log.create({ id: "a", function: "f", input: lively() });
        expect((await log.created("a")).input).toEqual(stored);
        await log.signal("a", "go", lively());
        expect((await log.responses("a")).items).toMatchObject([{ response: { value: stored } }]);
        const { version } = await log.lastEvent("a");
        const ended = { kind: "completed", value: lively() } as const;
        await log.finish("a", version + 1, ended);
        expect(await log.result("a")).toEqual({ kind: "completed", value: stored, unread: 1 });
      }),
    );

    test(
      "is read again as it was stored: inputs, events and outputs of processes",
      on(async (database) => {
        const store = processes(database);
        await store.register({ id: "p", kind: "tool", input: lively() });
        expect(await store.get("p")).toMatchObject({ input: stored });
        await store.complete("p", { kind: "completed", value: lively() });
        expect(await store.output("p")).toEqual({ kind: "completed", value: stored });
        expect((await store.events("p")).damaged).toEqual([]);
      }),
    );

    test(
      "is read again as it was stored: effects and answers from outside",
      on(async (database) => {
        const outside = effects(database);
        await outside.execute(turn, "k", { kind: "llm", input: lively() }, lively);
        expect(await outside.get(turn, "k")).toMatchObject({ input: stored });
        const awaited = awaitEvents(database);
        await awaited.resolve((await awaited.open(turn, "yes")).token, lively());
        expect(await awaited.wait(turn, "yes")).toMatchObject({ value: stored });
        const failure = Object.assign(new Error("no"), { data: lively() });
        await awaited.fail((await awaited.open(turn, "no")).token, failure);
        expect(await awaited.wait(turn, "no")).toMatchObject({ error: { data: stored } });
      }),
    );

    test(
      "is read again as it was stored: nodes and frames of sessions, and items of their queues",
      on(async (database) => {
        const store = sessions(database);
        const session = await store.create("s");
        const fence = await leases(database).waitForLease("s", { owner: "ada", incarnation: "1" });
        await store.commit(session, {
          turn: "t",
          fence,
          nodes: [{ kind: "message", payload: lively() }],
          frames: [{ id: "f", reason: "start", data: lively() }],
        });
        expect((await store.path("s")).nodes).toMatchObject([{ payload: stored }]);
        expect((await store.head("s")).frames).toMatchObject([{ data: stored }]);
        await queue(database).enqueue("s", { items: [{ kind: "k", payload: lively() }] });
        expect((await queue(database).list("s")).items).toMatchObject([
          { items: [{ payload: stored }] },
        ]);
      }),
    );

    test(
      "is read again as it was stored: occurrences and subscriptions",
      on(async (database) => {
        const rules = triggers(database);
        const source = { type: "webhook", key: "github" };
        const target = { kind: "tool" };
        await rules.subscribe({
          key: "push",
          source,
          target,
          arguments: { given: { value: lively() } },
        });
        expect(await rules.get({ key: "push" })).toMatchObject({
          content: { arguments: { given: { value: stored } } },
        });
        await rules.record({ key: "1", source, payload: lively() });
        expect(await rules.occurrence("1")).toMatchObject({ payload: stored });
      }),
    );
  });
}
