import { describe, expect, test } from "vitest";
import { run, sql, type Page } from "../../../src/kernel.ts";
import type { UnstartedDelivery, SubscriptionDraft } from "../../../src/triggers.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { inTriggers, storedTriggers, webhook } from "./fixture.ts";
import type { InTriggers } from "./fixture.ts";

const draft: SubscriptionDraft = {
  key: "a",
  source: webhook,
  target: { kind: "build" },
};

export function deliveriesSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("what an occurrence starts", () => {
    deliveryTests(fixture);
    sweepTests(fixture);
  });
}

function deliveryTests(fixture: InTriggers): void {
  test(
    "[A86] passes over a subscription that makes no sense, names it, and delivers to the others",
    fixture(async ({ mine: { triggers, database } }) => {
      for (const key of ["a", "b", "c"]) await triggers.subscribe({ ...draft, key });
      await database.write("damage", () =>
        run(sql`UPDATE holdfast_trigger_subscription SET content = '[1' WHERE name = 'b'`),
      );
      const { deliveries, damaged } = await triggers.record({
        key: "o",
        source: webhook,
      });
      expect(deliveries.map(({ subscription }) => subscription.key)).toEqual(["a", "c"]);
      expect(damaged).toMatchObject([{ table: "holdfast_trigger_subscription" }]);
    }),
  );

  test(
    "gives the process its arguments, its origin, its cause and its handle",
    fixture(async ({ mine }) => {
      const { triggers, sessions, processes } = mine;
      await sessions.create("s1");
      await triggers.subscribe({
        key: "a",
        registrant: "s1",
        source: webhook,
        label: "Build",
        target: { kind: "build", definition: "ci", wakeTarget: "s1" },
        arguments: {
          event: { from: "event" },
          body: { from: "payload" },
          branch: { value: "main" },
        },
        grant: { label: "the build" },
      });
      const { deliveries } = await triggers.record({
        key: "o",
        source: webhook,
        payload: { n: 1 },
        occurredAt: 7,
      });
      const id = deliveries[0]?.process ?? "";
      // Registering the same again answers with what is there.
      const { record } = await processes.register({
        id,
        kind: "build",
        label: "Build",
        definition: "ci",
        originator: { id: "s1", generation: 1 },
        causedBy: "occurrence:o",
        wakeTarget: "s1",
        input: {
          event: {
            source: webhook,
            occurrence: "o",
            occurredAt: 7,
            payload: { n: 1 },
          },
          body: { n: 1 },
          branch: "main",
        },
      });
      expect(record).toMatchObject({ status: "running", startedAt: null });
      const stored = JSON.stringify(await storedTriggers(mine));
      expect(stored).toContain('"label":"the build"');
    }),
  );

  test(
    "refuses a payload that breaks the schema of a subscription, says where, and remembers that",
    fixture(async ({ mine: { triggers } }) => {
      await triggers.subscribe({
        ...draft,
        payloadSchema: {
          type: "object",
          required: ["n"],
          properties: { n: { type: "integer", minimum: 1 } },
        },
      });
      const occurrence = { key: "o", source: webhook, payload: { n: 0 } };
      const recorded = await triggers.record(occurrence);
      expect(recorded.deliveries).toMatchObject([
        {
          process: null,
          refusal: { code: "EVENT_PAYLOAD_INVALID", path: "$.n" },
        },
      ]);
      expect(await triggers.record(occurrence)).toEqual({
        ...recorded,
        kind: "replayed",
      });
      expect(await triggers.record({ ...occurrence, key: "p", payload: { n: 1 } })).toMatchObject({
        deliveries: [{ refusal: null }],
      });
    }),
  );

  test(
    "judges and delivers a payload as it was when the call was made",
    fixture(async ({ mine: { triggers, processes } }) => {
      const payloadSchema = { properties: { n: { maximum: 1 } } } as const;
      const named = { body: { from: "payload" } } as const;
      await triggers.subscribe({ ...draft, payloadSchema, arguments: named });
      const payload = { n: 1 };
      const good = triggers.record({ key: "o", source: webhook, payload });
      payload.n = 2;
      const bad = triggers.record({ key: "p", source: webhook, payload });
      payload.n = 1;
      const [delivery] = (await good).deliveries;
      expect(delivery).toMatchObject({ refusal: null });
      const { input } = (await processes.get(delivery?.process ?? "")) ?? {};
      expect(input).toEqual({ body: { n: 1 } });
      expect(await bad).toMatchObject({
        occurrence: { payload: { n: 2 } },
        deliveries: [{ process: null, refusal: { path: "$.n" } }],
      });
    }),
  );

  test(
    "refuses a subscription whose wake target is gone, and delivers to the others",
    fixture(async ({ mine: { triggers, sessions } }) => {
      await sessions.create("s1");
      const target = { kind: "build", wakeTarget: "s1" };
      await triggers.subscribe({ ...draft, target });
      await triggers.subscribe({ ...draft, key: "b" });
      await sessions.delete("s1");
      expect(await triggers.record({ key: "o", source: webhook })).toMatchObject({
        deliveries: [{ process: null, refusal: { code: "SESSION_NOT_FOUND" } }, { refusal: null }],
      });
    }),
  );

  test(
    "does not deliver to a session that was deleted, not even before it is cleared away",
    fixture(async ({ mine: { triggers, sessions, database } }) => {
      await sessions.create("s1");
      await triggers.subscribe({ ...draft, registrant: "s1" });
      await database.write("delete", () =>
        run(sql`UPDATE holdfast_session SET deleted_at = 1 WHERE id = 's1'`),
      );
      expect((await triggers.list()).items).toEqual([]);
      await sessions.create("s1");
      expect(await triggers.record({ key: "o", source: webhook })).toMatchObject({
        deliveries: [],
        damaged: [],
      });
    }),
  );
}

function sweepTests(fixture: InTriggers): void {
  test(
    "[AX9] what nobody has begun is found by the sweep, until somebody has, and once",
    fixture(async ({ mine, theirs }) => {
      const { triggers, processes } = mine;
      await processes.register({ id: "before", kind: "other" });
      await processes.register({ id: "trigger;after", kind: "other" });
      await triggers.subscribe(draft);
      for (const key of ["1", "2", "3"]) await triggers.record({ key, source: webhook });
      const found: string[] = [];
      let after: string | undefined;
      do {
        const page: Page<UnstartedDelivery> = await theirs.triggers.unstarted({
          limit: 2,
          ...(after !== undefined && { after }),
        });
        found.push(...page.items.map(({ occurrence }) => occurrence));
        after = page.next;
      } while (after !== undefined);
      expect(found.toSorted()).toEqual(["1", "2", "3"]);
      const { items } = await triggers.unstarted({ limit: 1 });
      const [first] = items;
      expect(first).toMatchObject({
        source: webhook,
        subscription: { key: "a", registrant: null, revision: 1 },
        refusal: null,
      });
      const worker = { owner: "w", incarnation: "1" };
      const process = first?.process ?? "";
      const outcome = await theirs.processes.claim(process, worker);
      if (outcome.kind !== "acquired") throw new Error("It was free.");
      expect((await triggers.unstarted()).items).toHaveLength(2);
      await theirs.processes.start(outcome.lease);
      await theirs.processes.release(outcome.lease);
      const left = (await triggers.unstarted()).items;
      expect(left.map((each) => each.process)).not.toContain(process);
      expect(left).toHaveLength(2);
    }),
  );

  test(
    "cancelling an occurrence asks processes in the order of their registration, as all who lock several",
    fixture(async ({ mine: { triggers } }) => {
      for (const key of ["a", "b", "c", "d", "e"]) await triggers.subscribe({ ...draft, key });
      const { deliveries } = await triggers.record({
        key: "o",
        source: webhook,
      });
      const { items } = await triggers.cancelOccurrence("o");
      expect(items).toEqual(deliveries.map(({ process }) => process));
      expect(items).not.toEqual(items.toSorted());
    }),
  );

  test(
    "cancelling an occurrence asks what it started and still runs, once for each reason",
    fixture(async ({ mine }) => {
      const { triggers, processes } = mine;
      await triggers.subscribe(draft);
      await triggers.subscribe({ ...draft, key: "b" });
      const { deliveries } = await triggers.record({
        key: "o",
        source: webhook,
      });
      const [ended = "", running = ""] = deliveries.map(({ process }) => process ?? "");
      await processes.complete(ended, { kind: "completed", value: null });
      expect(await triggers.cancelOccurrence("o", { reason: "enough" })).toEqual({
        items: [running],
        damaged: [],
      });
      const before = await storedTriggers(mine);
      expect(await triggers.cancelOccurrence("o", { reason: "enough" })).toEqual({
        items: [running],
        damaged: [],
      });
      await processes.cancel(running, { reason: "enough" });
      expect(await storedTriggers(mine)).toEqual(before);
      // One that makes no sense is named, and keeps nobody from asking the others.
      await triggers.record({ key: "p", source: webhook });
      const [bad = "", good = ""] = (await triggers.occurrence("p")).deliveries
        .map(({ process }) => process ?? "")
        .toSorted();
      await mine.database.write("damage", () =>
        run(sql`UPDATE holdfast_process SET wait = '{{' WHERE id = ${bad}`),
      );
      expect(await triggers.cancelOccurrence("p")).toEqual({
        items: [good],
        damaged: [{ table: "holdfast_process", key: bad }],
      });
      expect(await rejection(triggers.cancelOccurrence("none"))).toMatchObject({
        code: "OCCURRENCE_NOT_FOUND",
      });
      expect(await rejection(triggers.cancelOccurrence("o", { reason: "" }))).toMatchObject({
        code: "NAME_INVALID",
      });
    }),
  );
}
