import { describe, expect, test } from "vitest";
import { run, sql } from "../../../src/kernel.ts";
import type { SubscriptionDraft } from "../../../src/triggers.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { inTriggers, keysOf, monday, storedTriggers, webhook, termsOf } from "./fixture.ts";
import type { InTriggers } from "./fixture.ts";

const draft: SubscriptionDraft = {
  key: "a",
  source: webhook,
  target: { kind: "build" },
};

export function subscriptionsSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("subscribing", () => {
    refusalTests(fixture);
    subscribeTests(fixture);
    switchTests(fixture);
  });
}

function refusalTests(fixture: InTriggers): void {
  const target = { kind: "build" };
  test.each<[string, string, object]>([
    ["nothing", "SUBSCRIPTION_INVALID", { source: undefined }],
    ["no type", "NAME_INVALID", { source: {} }],
    ["a type that is no text", "NAME_INVALID", { source: { type: 5 } }],
    ["a blank key of a source", "NAME_INVALID", { source: { type: "t", key: "" } }],
    ["a type of ours", "SUBSCRIPTION_INVALID", { source: { type: "schedule" } }],
    ["a bad expression", "CRON_INVALID", { source: { cron: "* *" } }],
    ["a bad zone", "TIME_ZONE_INVALID", { source: { cron: "0 * * * *", timeZone: "?" } }],
    ["a short interval", "INTERVAL_INVALID", { source: { every: 1 } }],
    ["two cadences", "OPTION_INVALID", { source: { every: "1h", cron: "0 * * * *" } }],
    ["no target", "SUBSCRIPTION_INVALID", { target: null }],
    ["a target without a kind", "NAME_INVALID", { target: {} }],
    ["a bad disposition", "SUBSCRIPTION_INVALID", { target: { ...target, disposition: "?" } }],
    ["bad event types", "SUBSCRIPTION_INVALID", { target: { ...target, eventTypes: [5] } }],
    ["a bad wake target", "ID_MALFORMED", { target: { ...target, wakeTarget: "" } }],
    ["a bad schema", "SUBSCRIPTION_INVALID", { payloadSchema: { type: "thing" } }],
    ["arguments that are a list", "SUBSCRIPTION_INVALID", { arguments: [] }],
    ["an argument from nowhere", "SUBSCRIPTION_INVALID", { arguments: { a: {} } }],
    [
      "an argument from two places",
      "SUBSCRIPTION_INVALID",
      { arguments: { a: { from: "event", value: 1 } } },
    ],
    ["a value that is none", "NOT_SERIALIZABLE", { arguments: { a: { value: () => 1 } } }],
    ["a grant that is none", "SUBSCRIPTION_INVALID", { grant: 5 }],
    ["a blank key", "NAME_INVALID", { key: "" }],
    ["a key that is no text", "NAME_INVALID", { key: 5 }],
    ["a session that is none", "SESSION_NOT_FOUND", { registrant: "none" }],
    ["a flag that is none", "OPTION_INVALID", { isEnabled: 1 }],
    ["a misspelt part", "OPTION_INVALID", { lable: "Build" }],
    ["a misspelt part of its source", "OPTION_INVALID", { source: { type: "t", sourceKey: "k" } }],
    [
      "a misspelt part of its schedule",
      "OPTION_INVALID",
      { source: { cron: "0 * * * *", timezone: "Europe/Berlin" } },
    ],
    [
      "a misspelt part of its target",
      "OPTION_INVALID",
      { target: { ...target, wakeSession: "s1" } },
    ],
    ["a misspelt part of its grant", "OPTION_INVALID", { grant: { name: "b" } }],
  ])("with %s is refused (%s) and leaves nothing", (_, code, part) =>
    fixture(async ({ mine }) => {
      const before = await storedTriggers(mine);
      expect(await rejection(mine.triggers.subscribe({ ...draft, ...part }))).toMatchObject({
        code,
        retryable: false,
      });
      expect(await storedTriggers(mine)).toEqual(before);
    })(),
  );

  test(
    "[A87] with a label that is not the target's is refused, and so is a key that is taken",
    fixture(async ({ mine }) => {
      const { triggers } = mine;
      expect(
        await rejection(
          triggers.subscribe({
            ...draft,
            label: "Build",
            target: { kind: "build", label: "Test" },
          }),
        ),
      ).toMatchObject({
        code: "SUBSCRIPTION_INVALID",
        details: { path: "$.label" },
      });
      await triggers.subscribe({ ...draft, label: "Build" });
      const before = await storedTriggers(mine);
      for (const [part, other] of [
        ["label", { label: "Test" }],
        ["source", { source: { type: "webhook", key: "other" } }],
        ["source", { source: { cron: "0 * * * *" } }],
        ["target", { label: "Build", target: { kind: "test" } }],
        ["arguments", { label: "Build", arguments: { a: { value: 1 } } }],
        ["payloadSchema", { label: "Build", payloadSchema: {} }],
        ["grant", { label: "Build", grant: null }],
      ] as const)
        expect(await rejection(triggers.subscribe({ ...draft, ...other }))).toMatchObject({
          code: "SUBSCRIPTION_EXISTS",
          details: { key: "a", part },
        });
      expect(await storedTriggers(mine)).toEqual(before);
    }),
  );
}

function subscribeTests(fixture: InTriggers): void {
  test(
    "[A83] disabling another session's subscription does nothing; one's own is kept as disabled",
    fixture(async ({ mine: { triggers, sessions } }) => {
      await sessions.create("s1");
      await sessions.create("s2");
      await triggers.subscribe({ ...draft, registrant: "s1" });
      expect(await triggers.disable({ registrant: "s2", key: "a" })).toBe(false);
      expect(await triggers.disable("a")).toBe(false);
      const own = { registrant: "s1", key: "a" };
      expect(await triggers.disable(own)).toBe(true);
      expect(await triggers.disable(own)).toBe(false);
      expect(await triggers.get(own)).toMatchObject({
        isEnabled: false,
        revision: 2,
      });
      expect(await triggers.enable(own)).toBe(true);
      expect(await triggers.enable(own)).toBe(false);
      expect(await triggers.get(own)).toMatchObject({
        isEnabled: true,
        revision: 3,
      });
    }),
  );

  test(
    "twice with the same is subscribing once, whatever happened since",
    fixture(async ({ mine, theirs, clock }) => {
      const first = await mine.triggers.subscribe(draft);
      expect(first).toEqual({
        existed: false,
        subscription: {
          key: "a",
          registrant: null,
          revision: 1,
          isEnabled: true,
          source: webhook,
          createdAt: monday,
          changedAt: monday,
          content: {
            source: webhook,
            label: null,
            payloadSchema: null,
            target: {
              kind: "build",
              label: null,
              definition: null,
              attemptsMax: null,
              disposition: "rerunnable",
              eventTypes: [],
              wakeTarget: null,
            },
            arguments: null,
            grant: { kind: null, label: null },
          },
        },
      });
      clock.advance(1);
      const again = await theirs.triggers.subscribe(draft);
      expect(again).toEqual({ ...first, existed: true });
      await mine.triggers.disable("a");
      expect(await theirs.triggers.subscribe(draft)).toMatchObject({
        existed: true,
        subscription: { isEnabled: false, revision: 2 },
      });
    }),
  );

  test(
    "again with another state than it has is refused when the state was told, and changes nothing",
    fixture(async ({ mine }) => {
      const { triggers } = mine;
      await triggers.subscribe(draft);
      const scheduled = { ...draft, key: "b", source: { cron: "0 * * * *" } };
      await triggers.subscribe({ ...scheduled, isEnabled: false });
      const before = await storedTriggers(mine);
      for (const call of [
        () => triggers.subscribe({ ...draft, isEnabled: false }),
        () => triggers.subscribe({ ...scheduled, isEnabled: true }),
      ])
        expect(await rejection(call())).toMatchObject({
          code: "SUBSCRIPTION_EXISTS",
          details: { part: "isEnabled" },
        });
      for (const same of [
        { ...draft, isEnabled: true },
        { ...scheduled, isEnabled: false },
        scheduled,
      ])
        expect(await triggers.subscribe(same)).toMatchObject({ existed: true });
      expect(await storedTriggers(mine)).toEqual(before);
    }),
  );

  test(
    "at once from two processes makes one subscription",
    fixture(async ({ mine, theirs }) => {
      for (let round = 0; round < 5; round += 1) {
        const both = await Promise.all(
          [mine, theirs].map(({ triggers }) => triggers.subscribe({ ...draft, key: `${round}` })),
        );
        expect(both.map(({ existed }) => Number(existed))).toSatisfy(
          ([a, b]: readonly number[]) => (a ?? 0) + (b ?? 0) === 1,
        );
      }
      expect(await keysOf(mine, {})).toBe("host/0 host/1 host/2 host/3 host/4");
    }),
  );
}

function switchTests(fixture: InTriggers): void {
  test(
    "at most 64 enabled subscriptions listen to a source, and the error names the limit",
    fixture(async ({ mine: { triggers } }) => {
      const elsewhere = { type: "webhook", key: "elsewhere" };
      await Promise.all(
        Array.from({ length: 64 }, (_, index) =>
          triggers.subscribe({ ...draft, key: `k${index}` }),
        ),
      );
      await triggers.subscribe({ ...draft, key: "off", isEnabled: false });
      await triggers.subscribe({ ...draft, key: "moved", source: elsewhere });
      for (const attempt of [
        () => triggers.subscribe({ ...draft, key: "more" }),
        () => triggers.enable("off"),
        () => triggers.revise("moved", termsOf(draft)),
      ])
        expect(await rejection(attempt())).toMatchObject({
          code: "SUBSCRIPTION_INVALID",
          details: { path: "$.source", max: 64 },
        });
      expect(await triggers.subscribe({ ...draft, key: "k0" })).toMatchObject({
        existed: true,
      });
      await triggers.disable("k0");
      expect(await triggers.enable("off")).toBe(true);
    }),
  );

  test(
    "revising replaces what it says, once, and refuses whoever has not seen the last change",
    fixture(async ({ mine }) => {
      const { triggers } = mine;
      const terms = { source: webhook, target: { kind: "test" } };
      expect(await rejection(triggers.revise("a", terms))).toMatchObject({
        code: "SUBSCRIPTION_NOT_FOUND",
      });
      await triggers.subscribe(draft);
      const revised = await triggers.revise("a", terms, {
        expectedRevision: 1,
      });
      expect(revised).toMatchObject({
        isChanged: true,
        subscription: { revision: 2, content: { target: { kind: "test" } } },
      });
      // The same call again, its answer having been lost.
      expect(await triggers.revise("a", terms, { expectedRevision: 1 })).toEqual({
        ...revised,
        isChanged: false,
      });
      const before = await storedTriggers(mine);
      expect(
        await rejection(triggers.revise("a", termsOf(draft), { expectedRevision: 1 })),
      ).toMatchObject({
        code: "SUBSCRIPTION_CHANGED",
        details: { key: "a", expected: 1, actual: 2 },
      });
      expect(await storedTriggers(mine)).toEqual(before);
      expect(await triggers.revise("a", termsOf(draft))).toMatchObject({
        subscription: { revision: 3 },
      });
    }),
  );

  test.each<[string, object]>([
    ["key", { key: "a" }],
    ["registrant", { registrant: null }],
    ["isEnabled", { isEnabled: true }],
  ])("revising takes no %s, which it cannot change, not even the one it has", (option, known) =>
    fixture(async ({ mine }) => {
      await mine.triggers.subscribe(draft);
      const before = await storedTriggers(mine);
      const terms = { ...termsOf(draft), label: "l", ...known };
      expect(await rejection(mine.triggers.revise("a", terms))).toMatchObject({
        code: "OPTION_INVALID",
        details: { option },
      });
      expect(await storedTriggers(mine)).toEqual(before);
    })(),
  );

  test(
    "deleting leaves a tombstone, so that revisions go on when the key is used again",
    fixture(async ({ mine: { triggers } }) => {
      await triggers.subscribe(draft);
      expect(await triggers.delete("a")).toBe(true);
      expect(await triggers.delete("a")).toBe(false);
      expect(await triggers.disable("a")).toBe(false);
      expect(await triggers.get("a")).toBeUndefined();
      expect((await triggers.list()).items).toEqual([]);
      expect(await rejection(triggers.revise("a", termsOf(draft)))).toMatchObject({
        code: "SUBSCRIPTION_NOT_FOUND",
      });
      expect(await triggers.subscribe({ ...draft, target: { kind: "test" } })).toMatchObject({
        existed: false,
        subscription: { revision: 3 },
      });
    }),
  );

  test(
    "a row that makes no sense is reported where it is read, and named in lists",
    fixture(async ({ mine: { triggers, database } }) => {
      await triggers.subscribe(draft);
      await triggers.subscribe({ ...draft, key: "b" });
      for (const content of ["nonsense", '{"a":1}', "null"]) {
        await database.write("damage", () =>
          run(sql`UPDATE holdfast_trigger_subscription SET content = ${content} WHERE name = 'a'`),
        );
        expect(await rejection(triggers.get("a"))).toMatchObject({
          code: "CORRUPT_ROW",
        });
        const { items, damaged } = await triggers.list();
        expect(items.map(({ key }) => key)).toEqual(["b"]);
        expect(damaged).toMatchObject([{ table: "holdfast_trigger_subscription" }]);
      }
    }),
  );
}
