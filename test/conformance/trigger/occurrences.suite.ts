import { describe, expect, test } from "vitest";
import { run, sql, type Page } from "../../../src/kernel.ts";
import type { OccurrenceView, SubscriptionDraft } from "../../../src/triggers.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { inTriggers, monday, processIds, storedTriggers, webhook } from "./fixture.ts";
import type { InTriggers, Side } from "./fixture.ts";

const draft: SubscriptionDraft = {
  key: "a",
  source: webhook,
  target: { kind: "build" },
};

export function occurrencesSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("recording an occurrence", () => {
    recordTests(fixture);
  });
  describe("listing occurrences", () => {
    missingTests(fixture);
    pageTests(fixture);
  });
}

function recordTests(fixture: InTriggers): void {
  test(
    "starts processes as the target says, with how often they may be begun",
    fixture(async ({ mine: { triggers, processes } }) => {
      const target = { kind: "build", attemptsMax: 2 };
      await triggers.subscribe({ ...draft, target });
      const { deliveries } = await triggers.record({
        key: "o",
        source: webhook,
        payload: 1,
      });
      const started = deliveries[0]?.process ?? "";
      expect(await processes.get(started)).toMatchObject({
        identity: { kind: "build" },
        attemptsMax: 2,
      });
    }),
  );

  test.each<[string, string, object]>([
    ["a blank key", "NAME_INVALID", { key: "" }],
    ["no source", "SUBSCRIPTION_INVALID", { source: undefined }],
    ["a blank type", "NAME_INVALID", { source: { type: "", key: "k" } }],
    ["a blank source key", "NAME_INVALID", { source: { type: "t", key: "" } }],
    ["a source of ours", "SUBSCRIPTION_INVALID", { source: { type: "schedule", key: "0/a" } }],
    ["a key of a schedule", "NAME_INVALID", { key: "schedule:0/a@1" }],
    ["a payload that cannot be stored", "NOT_SERIALIZABLE", { payload: () => 1 }],
    ["a misspelt part", "OPTION_INVALID", { paylaod: 1 }],
    ["a misspelt part of its source", "OPTION_INVALID", { source: { type: "t", sourceKey: "k" } }],
    ["a time that is none", "OPTION_INVALID", { occurredAt: 0.5 }],
    ["a time beyond all dates", "OPTION_INVALID", { occurredAt: 2 ** 53 }],
  ])("with %s is refused (%s) and leaves nothing", (_, code, part) =>
    fixture(async ({ mine }) => {
      await mine.triggers.subscribe(draft);
      const before = await storedTriggers(mine);
      const occurrence = { key: "o", source: webhook, ...part };
      expect(await rejection(mine.triggers.record(occurrence as never))).toMatchObject({
        code,
        retryable: false,
      });
      expect(await storedTriggers(mine)).toEqual(before);
      expect(await rejection(mine.triggers.record(null as never))).toMatchObject({
        code: "OPTION_INVALID",
      });
    })(),
  );

  test(
    "[A84] twice gives the same deliveries, replayed, and one process each, whose id follows from both",
    fixture(async ({ mine, theirs, clock }) => {
      const { triggers, sessions } = mine;
      await sessions.create("s1");
      await triggers.subscribe({ ...draft, key: "b" });
      await triggers.subscribe({ ...draft, registrant: "s1" });
      await triggers.subscribe({ ...draft, key: "off", isEnabled: false });
      await triggers.subscribe({
        ...draft,
        key: "other",
        source: { type: "webhook", key: "gitlab" },
      });
      const occurrence = { key: "o1", source: webhook, payload: { n: 1 } };
      const recorded = await triggers.record(occurrence);
      const ids = await processIds(mine);
      expect(recorded).toEqual({
        kind: "recorded",
        occurrence: {
          key: "o1",
          source: webhook,
          payload: { n: 1 },
          occurredAt: monday,
          recordedAt: monday,
        },
        deliveries: [
          {
            subscription: { key: "b", registrant: null, revision: 1 },
            process: "trigger:3ca85e88c456bbca14a542863313674d7f23847e1e57538d5ce36c77c005bd90",
            refusal: null,
          },
          {
            subscription: {
              key: "a",
              registrant: { id: "s1", generation: 1 },
              revision: 1,
            },
            process: "trigger:c9328ec33eadd4b5a2de26b76c9e5dd79b5b8135d0df6afa00e87dc8f0061114",
            refusal: null,
          },
        ],
        damaged: [],
      });
      expect(ids).toEqual([
        "trigger:3ca85e88c456bbca14a542863313674d7f23847e1e57538d5ce36c77c005bd90",
        "trigger:c9328ec33eadd4b5a2de26b76c9e5dd79b5b8135d0df6afa00e87dc8f0061114",
      ]);
      const before = await storedTriggers(mine);
      clock.advance(5);
      expect(await theirs.triggers.record(occurrence)).toEqual({
        ...recorded,
        kind: "replayed",
      });
      expect(await storedTriggers(mine)).toEqual(before);
      const { deliveries, occurrence: stored } = recorded;
      expect(await theirs.triggers.occurrence("o1")).toEqual({
        ...stored,
        deliveries,
      });
    }),
  );

  test(
    "as a part of another transaction happens with it or not at all",
    fixture(async ({ mine }) => {
      const { triggers, database } = mine;
      const subscribe = triggers.subscribe.prepare(draft);
      const payload = { n: 1 };
      const record = triggers.record.prepare({
        key: "o",
        source: webhook,
        payload,
      });
      payload.n = 2;
      const before = await storedTriggers(mine);
      const both = (isRefused: boolean) =>
        database.write(
          "subscribe and record",
          function* () {
            const { existed } = yield* subscribe();
            const { kind, occurrence, deliveries } = yield* record();
            if (isRefused) throw new Error("Not now.");
            return { existed, kind, occurrence, deliveries };
          },
          { isolation: "readCommitted" },
        );
      expect((await rejection(both(true))).message).toBe("Not now.");
      expect(await storedTriggers(mine)).toEqual(before);
      const first = await both(false);
      expect(first).toMatchObject({
        existed: false,
        kind: "recorded",
        occurrence: { payload: { n: 1 } },
        deliveries: [{ refusal: null }],
      });
      expect(await both(false)).toEqual({
        ...first,
        existed: true,
        kind: "replayed",
      });
    }),
  );

  test(
    "[A84] again with something else under its key is refused, and the difference named",
    fixture(async ({ mine }) => {
      await mine.triggers.subscribe(draft);
      const occurrence = { key: "o1", source: webhook, payload: { secret: 1 } };
      await mine.triggers.record(occurrence);
      const before = await storedTriggers(mine);
      for (const [part, other] of [
        ["source.type", { source: { type: "mail", key: "github" } }],
        ["source.key", { source: { type: "webhook", key: "gitlab" } }],
        ["payload", { payload: { secret: 2 } }],
      ] as const) {
        const error = await rejection(mine.triggers.record({ ...occurrence, ...other }));
        expect(error).toMatchObject({
          code: "OCCURRENCE_CONFLICT",
          details: { key: "o1", part },
        });
        expect(JSON.stringify([error.message, error.details])).not.toContain("secret");
      }
      // The time is the first one's.
      expect(await mine.triggers.record({ ...occurrence, occurredAt: 5 })).toMatchObject({
        kind: "replayed",
        occurrence: { occurredAt: monday },
      });
      expect(await storedTriggers(mine)).toEqual(before);
    }),
  );

  test(
    "at once from two processes starts one process",
    fixture(async ({ mine, theirs }) => {
      await mine.sessions.create("s1");
      await mine.triggers.subscribe({ ...draft, registrant: "s1" });
      for (let round = 0; round < 5; round += 1) {
        const outcomes = await Promise.all(
          [mine, theirs, mine, theirs].map(({ triggers }) =>
            triggers.record({ key: `${round}`, source: webhook }),
          ),
        );
        expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual([
          "recorded",
          "replayed",
          "replayed",
          "replayed",
        ]);
        expect(new Set(outcomes.map(({ deliveries }) => deliveries[0]?.process)).size).toBe(1);
      }
      expect(await processIds(mine)).toHaveLength(5);
    }),
  );

  test(
    "lists occurrences of a source or a subscription, the latest first, in pages",
    fixture(async ({ mine: { triggers, database } }) => {
      await triggers.subscribe(draft);
      for (const key of ["1", "2", "3"]) await triggers.record({ key, source: webhook });
      await triggers.record({ key: "4", source: { type: "mail", key: "m" } });
      const keys = async (options: object): Promise<string> =>
        (await triggers.occurrences(options)).items
          .map(({ key, deliveries }) => `${key}:${deliveries.length}`)
          .join(" ");
      expect(await keys({})).toBe("4:0 3:1 2:1 1:1");
      expect(await keys({ source: webhook })).toBe("3:1 2:1 1:1");
      const { next } = await triggers.occurrences({
        subscription: "a",
        limit: 2,
      });
      expect(await keys({ subscription: "a", after: next })).toBe("1:1");
      await triggers.delete("a");
      expect(await keys({ subscription: "a" })).toBe("3:1 2:1 1:1");
      expect(await rejection(triggers.occurrences({ subscription: "b" }))).toMatchObject({
        code: "SUBSCRIPTION_NOT_FOUND",
      });
      await database.write("damage", () =>
        run(sql`UPDATE holdfast_trigger_occurrence SET payload = 'nonsense' WHERE id = '2'`),
      );
      const { damaged } = await triggers.occurrences();
      expect(damaged).toEqual([{ table: "holdfast_trigger_occurrence", key: "2" }]);
      expect(await rejection(triggers.occurrence("2"))).toMatchObject({
        code: "CORRUPT_ROW",
      });
      // A delivery that makes no sense is named by itself, and its occurrence shown without it.
      await database.write("damage", () =>
        run(sql`UPDATE holdfast_trigger_delivery SET refusal = '{{'`),
      );
      const page = await triggers.occurrences({ source: webhook, limit: 1 });
      expect(page.items).toMatchObject([{ key: "3", deliveries: [] }]);
      expect(page.damaged).toMatchObject([{ table: "holdfast_trigger_delivery" }]);
      expect(await rejection(triggers.occurrence("none"))).toMatchObject({
        code: "OCCURRENCE_NOT_FOUND",
      });
    }),
  );
}

function missingTests(fixture: InTriggers): void {
  test(
    "goes on past what was delivered of an occurrence whose row is lost, and names the delivery",
    fixture(async ({ mine: { triggers, database } }) => {
      await triggers.subscribe(draft);
      await triggers.subscribe({ ...draft, key: "b" });
      for (const key of ["1", "2", "3", "4"]) await triggers.record({ key, source: webhook });
      await database.write("damage", () =>
        run(sql`DELETE FROM holdfast_trigger_occurrence WHERE id IN ('2', '3')`),
      );
      const lost = {
        table: "holdfast_trigger_delivery",
        key: expect.stringMatching(/^[0-9]+\/a$/),
      };
      const first = await triggers.occurrences({ subscription: "a", limit: 2 });
      expect(first.items).toMatchObject([{ key: "4" }]);
      expect(first.damaged).toEqual([lost]);
      const second = await triggers.occurrences({
        subscription: "a",
        limit: 2,
        ...(first.next !== undefined && { after: first.next }),
      });
      expect(second.items).toMatchObject([{ key: "1" }]);
      expect(second.damaged).toEqual([lost]);
      expect(second.next).toBeUndefined();
    }),
  );

  test(
    "names what an occurrence whose row is lost has registered among what is unstarted",
    fixture(async ({ mine: { triggers, database } }) => {
      await triggers.subscribe(draft);
      const processes: (string | null | undefined)[] = [];
      for (const key of ["1", "2"]) {
        const { deliveries } = await triggers.record({ key, source: webhook });
        processes.push(deliveries[0]?.process);
      }
      await database.write("damage", () =>
        run(sql`DELETE FROM holdfast_trigger_occurrence WHERE id = '1'`),
      );
      const { items, damaged } = await triggers.unstarted();
      expect(items.map(({ process }) => process)).toEqual([processes[1]]);
      expect(damaged).toEqual([{ table: "holdfast_trigger_delivery", key: processes[0] }]);
    }),
  );
}

function pageTests(fixture: InTriggers): void {
  /** The keys on each page, when pages of 1,000 are asked for. */
  const pages = async ({ triggers }: Side): Promise<readonly string[][]> => {
    const found: string[][] = [];
    let after: string | undefined;
    do {
      const page: Page<OccurrenceView> = await triggers.occurrences({
        limit: 1_000,
        ...(after !== undefined && { after }),
      });
      found.push(page.items.map(({ key }) => key));
      after = page.next;
    } while (after !== undefined);
    return found;
  };
  const keys = Array.from({ length: 20 }, (_, index) => `o${20 - index}`);

  test(
    "a page of large payloads ends early, and the next goes on",
    fixture(async ({ mine }) => {
      const payload = "x".repeat(300_000);
      for (const key of keys.toReversed())
        await mine.triggers.record({ key, source: webhook, payload });
      const lengths = (await pages(mine)).map(({ length }) => length);
      expect(lengths).toEqual([3, 3, 3, 3, 3, 3, 2]);
      expect((await pages(mine)).flat()).toEqual(keys);
    }),
  );

  test(
    "a page of many deliveries ends early, and the next goes on",
    fixture(async ({ mine }) => {
      const { triggers, database } = mine;
      for (const key of keys.toReversed()) await triggers.record({ key, source: webhook });
      for (let index = 0; index < 64; index += 1)
        await triggers.subscribe({ ...draft, key: `k${index}` });
      await database.write("deliver", () =>
        run(sql`
          INSERT INTO holdfast_trigger_delivery (occurrence, subscription, revision)
          SELECT o.key, s.key, 1 FROM holdfast_trigger_occurrence o, holdfast_trigger_subscription s`),
      );
      expect(await pages(mine)).toEqual([keys.slice(0, 16), keys.slice(16)]);
      const { items } = await triggers.occurrences({ limit: 17 });
      expect(items.map(({ deliveries }) => deliveries.length)).toEqual(Array<number>(16).fill(64));
    }),
  );
}
