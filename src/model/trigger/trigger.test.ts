import { describe, expect, test } from "vitest";
import {
  decideRevise,
  decideSubscribe,
  derivedSourceKey,
  firstDifference,
  inputOf,
  occurrenceDifference,
  scheduledOccurrence,
  subscriptionParts,
  triggeredProcess,
} from "./trigger.ts";
import type { KnownSubscription, TriggerEvent } from "./trigger.ts";

const said = { source: "1", target: "2" };
const known: KnownSubscription = {
  revision: 4,
  isDeleted: false,
  isEnabled: true,
  parts: said,
};
const deleted: KnownSubscription = { ...known, isDeleted: true, parts: {} };

/** Shows what is hashed. */
const hash = (domain: string, version: number, value: unknown): string =>
  `${domain}/${version}/${JSON.stringify(value)}`;

describe("subscribing under a key", () => {
  test("that is free makes the first revision", () => {
    expect(decideSubscribe(undefined, said)).toEqual({
      kind: "create",
      revision: 1,
    });
  });

  test("that was deleted goes on with its revisions", () => {
    expect(decideSubscribe(deleted, said)).toEqual({
      kind: "create",
      revision: 5,
    });
  });

  test("that is taken finds the same, and names what differs first", () => {
    expect(decideSubscribe(known, said)).toEqual({ kind: "existing" });
    expect(decideSubscribe(known, { ...said, target: "3", grant: "4" })).toEqual({
      kind: "conflict",
      part: "target",
    });
    expect(decideSubscribe(known, { source: "1" })).toEqual({
      kind: "conflict",
      part: "target",
    });
  });

  test("that is taken names whether it is enabled when that was told otherwise", () => {
    const off = { ...known, isEnabled: false };
    expect(decideSubscribe(known, said, true)).toEqual({ kind: "existing" });
    expect(decideSubscribe(off, said, false)).toEqual({ kind: "existing" });
    expect(decideSubscribe(off, said)).toEqual({ kind: "existing" });
    for (const [each, told] of [
      [known, false],
      [off, true],
    ] as const)
      expect(decideSubscribe(each, said, told)).toEqual({
        kind: "conflict",
        part: "isEnabled",
      });
  });
});

describe("revising a subscription", () => {
  const other = { ...said, target: "3" };

  test("that is not there is refused", () => {
    expect(decideRevise(undefined, other, undefined)).toEqual({
      kind: "missing",
    });
    expect(decideRevise(deleted, other, undefined)).toEqual({
      kind: "missing",
    });
  });

  test("to what it says already changes nothing, whatever was expected", () => {
    expect(decideRevise(known, said, 3)).toEqual({ kind: "unchanged" });
  });

  test("that somebody else has changed is refused", () => {
    expect(decideRevise(known, other, 3)).toEqual({
      kind: "overtaken",
      actual: 4,
    });
  });

  test("makes the next revision", () => {
    expect(decideRevise(known, other, 4)).toEqual({
      kind: "revise",
      revision: 5,
    });
    expect(decideRevise(known, other, undefined)).toEqual({
      kind: "revise",
      revision: 5,
    });
  });
});

describe("the parts of a subscription", () => {
  const content = {
    source: { type: "t", key: "k" },
    label: null,
    payloadSchema: null,
    target: { kind: "build" },
    arguments: null,
    grant: null,
  };

  test("are those that say something, each with a hash of its own", () => {
    expect(subscriptionParts(hash, content)).toEqual({
      source: 'subscription-source/1/{"type":"t","key":"k"}',
      target: 'subscription-target/1/{"kind":"build"}',
    });
  });

  test("differ first where they differ", () => {
    const own = subscriptionParts(hash, content);
    expect(firstDifference(own, own)).toBeUndefined();
    expect(firstDifference(own, subscriptionParts(hash, { ...content, label: "l" }))).toBe("label");
  });
});

describe("an occurrence that is recorded again", () => {
  const recorded = { source: { type: "t", key: "k" }, payloadHash: "h" };

  test.each([
    ["source.type", { source: { type: "u", key: "l" } }],
    ["source.key", { source: { type: "t", key: "l" } }],
    ["payload", { payloadHash: "i" }],
    [undefined, {}],
  ])("differs in %s", (part, other) => {
    expect(occurrenceDifference(recorded, { ...recorded, ...other })).toBe(part);
  });
});

describe("what a process is told", () => {
  const event: TriggerEvent = {
    source: { type: "t", key: "k" },
    occurrence: "o",
    occurredAt: 5,
    payload: { n: 1 },
  };

  test("is the event, unless arguments are named", () => {
    expect(inputOf(null, event)).toBe(event);
    expect(inputOf({}, event)).toEqual({});
    expect(
      inputOf(
        {
          all: { from: "event" },
          body: { from: "payload" },
          fixed: { value: undefined },
          ["__proto__"]: { value: "data" },
        },
        event,
      ),
    ).toEqual(
      Object.fromEntries([
        ["all", event],
        ["body", { n: 1 }],
        ["fixed", undefined],
        ["__proto__", "data"],
      ]),
    );
  });
});

describe("names", () => {
  test("follow from what they name", () => {
    expect(derivedSourceKey(hash, "file", { a: 1 })).toBe(
      'source:trigger-source/1/["file",{"a":1}]',
    );
    const source = { type: "t", key: "sk" };
    const told = { key: "o", source, payloadHash: "h" };
    expect(triggeredProcess(hash, told, null, "k")).toBe(
      'trigger:trigger-process/1/["o","t","sk","h",null,null,"k"]',
    );
    expect(triggeredProcess(hash, told, { id: "s", generation: 2 }, "k")).toBe(
      'trigger:trigger-process/1/["o","t","sk","h","s",2,"k"]',
    );
    expect(scheduledOccurrence("0/daily", 5)).toBe("schedule:0/daily@5");
  });
});
