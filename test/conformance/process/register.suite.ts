import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onProcesses, stored } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

export function processRegisterSuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("registering a process", () => {
    refusalTests(on);
    strangeTests(on);
    registrationTests(on);
    atOnceTests(on);
  });
}

function refusalTests(on: On): void {
  test.each<[string, string, object, string | undefined]>([
    ["a blank id", "ID_MALFORMED", { id: "  " }, undefined],
    ["an id that is no text", "ID_MALFORMED", { id: 7 }, undefined],
    ["a blank kind", "NAME_INVALID", { kind: "" }, undefined],
    ["an unknown disposition", "PROCESS_INVALID", { disposition: "later" }, "$.disposition"],
    ["event types that are no list", "PROCESS_INVALID", { eventTypes: "progress" }, "$.eventTypes"],
    ["a declaration that is null", "PROCESS_INVALID", { eventTypes: [null] }, "$.eventTypes[0]"],
    [
      "a blank event type",
      "PROCESS_INVALID",
      { eventTypes: [{ name: " " }] },
      "$.eventTypes[0].name",
    ],
    [
      "an event type declared twice",
      "PROCESS_INVALID",
      { eventTypes: [{ name: "a" }, { name: "a" }] },
      "$.eventTypes[1].name",
    ],
    [
      "a name of the registry",
      "PROCESS_INVALID",
      { eventTypes: [{ name: "process.waiting" }] },
      "$.eventTypes[0].name",
    ],
    [
      "a failure without output",
      "PROCESS_INVALID",
      { eventTypes: [{ name: "broke", terminal: { state: "failed" } }] },
      "$.eventTypes[0].terminal",
    ],
    [
      "a schema with a word that nobody checks",
      "PROCESS_INVALID",
      { eventTypes: [{ name: "a", schema: { pattern: "^x" } }] },
      "$.eventTypes[0].schema.pattern",
    ],
    [
      "a declaration that JSON cannot hold",
      "PROCESS_INVALID",
      {
        eventTypes: [{ name: "a", wake: { input: { kind: "constant", value: 7n } } }],
      },
      "$.eventTypes",
    ],
    [
      "a dedupe key that is none",
      "PROCESS_INVALID",
      {
        eventTypes: [
          {
            name: "a",
            wake: {
              input: { kind: "payload" },
              dedupe: { kind: "constant", value: "a\0" },
            },
          },
        ],
      },
      "$.eventTypes[0].wake.dedupe",
    ],
    [
      "a template without a value",
      "PROCESS_INVALID",
      {
        eventTypes: [
          {
            name: "a",
            wake: { input: { kind: "template", text: "{n}", values: {} } },
          },
        ],
      },
      "$.eventTypes[0].wake.input",
    ],
    ["an input that cannot be stored", "NOT_SERIALIZABLE", { input: () => 1 }, undefined],
    ["a wake target that does not exist", "SESSION_NOT_FOUND", { wakeTarget: "nobody" }, undefined],
    [
      "a wake target of another generation",
      "SESSION_DELETED",
      { wakeTarget: { id: "s", generation: 7 } },
      undefined,
    ],
  ])("%s is refused and leaves nothing", (_, code, change, path) =>
    on(async ({ store, database }) => {
      const before = await stored(database);
      const draft = { id: "p", kind: "tool", ...change };
      const error = await rejection(store.register(draft));
      expect(error).toMatchObject({ code });
      if (path !== undefined) expect(error.details).toMatchObject({ path });
      expect(await stored(database)).toEqual(before);
    })(),
  );
}

function strangeTests(on: On): void {
  test(
    "whatever is given in place of an object, the error says so",
    on(async ({ store, database }) => {
      await store.register({ id: "p", kind: "k" });
      const before = await stored(database);
      for (const given of [undefined, null, 7] as never[])
        for (const [code, call] of [
          ["OPTION_INVALID", () => store.register(given)],
          ["OPTION_INVALID", () => store.append("p", given)],
          ["OPTION_INVALID", () => store.signal("p", "go", 1, given)],
          ["OPTION_INVALID", () => store.setWait("p", given)],
          ["OPTION_INVALID", () => store.setExternalRef("p", given)],
          ["OPTION_INVALID", () => store.grant("p", given)],
          ["OPTION_INVALID", () => store.transfer("s", "s", given)],
          ["OPTION_INVALID", () => store.claim("p", given)],
          ["OPTION_INVALID", () => store.prune(given)],
          ["OPTION_INVALID", () => store.spawn(given)],
          ["OPTION_INVALID", () => store.spawn({ id: "q", kind: "k", execution: given })],
          ["ID_MALFORMED", () => store.get(given)],
          ["ID_MALFORMED", () => store.append(given, { type: "e" })],
          ["NAME_INVALID", () => store.append("p", { type: given })],
          ["NAME_INVALID", () => store.abandon("p", given)],
        ] as const)
          expect(await rejection(Promise.resolve().then<unknown>(call))).toMatchObject({ code });
      expect(await stored(database)).toEqual(before);
    }),
  );
}

const build = {
  id: "build",
  kind: "tool",
  label: "Build",
  definition: "make",
  input: { branch: "main" },
  eventTypes: [{ name: "progress" }],
  originator: "s",
  wakeTarget: "s",
  causedBy: "turn-1",
} as const;

function registrationTests(on: On): void {
  test(
    "[A55] the same registration is found again, also after the process went on",
    on(async ({ store, database, clock }) => {
      const first = await store.register(build);
      expect(first).toMatchObject({
        id: "build",
        existed: false,
        record: {
          id: "build",
          identity: { kind: "tool", label: "Build", definition: "make" },
          disposition: "rerunnable",
          input: { branch: "main" },
          originator: { session: "s", generation: null, frame: null },
          wakeTarget: { session: "s", generation: 1, frame: null },
          causedBy: "turn-1",
          status: "running",
          sequence: 0,
          createdAt: 1_000_000,
          updatedAt: 1_000_000,
          execution: null,
        },
      });
      clock.advance(5);
      await store.append("build", { type: "progress", payload: 1 });
      const before = await stored(database);
      const again = await store.register(build);
      expect(again).toMatchObject({
        key: first.key,
        existed: true,
        record: { sequence: 1, createdAt: 1_000_000, updatedAt: 1_000_005 },
      });
      expect(again.record.hash).toBe(first.record.hash);
      expect(await stored(database)).toEqual(before);
    }),
  );

  test.each<[string, object]>([
    ["kind", { kind: "engine" }],
    ["label", { label: "Another" }],
    ["definition", { definition: null }],
    ["input", { input: { branch: "next" } }],
    ["eventTypes", { eventTypes: [{ name: "progress" }, { name: "log" }] }],
    ["disposition", { disposition: "ownerBound" }],
    ["originator", { originator: { session: "s", frame: "planner" } }],
    ["causedBy", { causedBy: "turn-2" }],
    ["wakeTarget", { wakeTarget: null }],
  ])("[A55] another %s is a conflict that names it", (part, change) =>
    on(async ({ store, database }) => {
      await store.register(build);
      const before = await stored(database);
      const error = await rejection(store.register({ ...build, ...change }));
      expect(error).toMatchObject({
        code: "PROCESS_CONFLICT",
        details: { id: "build", part },
      });
      expect(error.message).not.toContain("next");
      expect(await stored(database)).toEqual(before);
    })(),
  );

  test(
    "[A55] it is found again when its wake target was deleted since",
    on(async ({ store, sessions }) => {
      await store.register(build);
      await sessions.delete("s");
      expect(await store.register(build)).toMatchObject({ existed: true });
    }),
  );

  test(
    "the order of properties makes no difference",
    on(async ({ store }) => {
      await store.register({ ...build, input: { a: 1, b: 2 } });
      expect(await store.register({ ...build, input: { b: 2, a: 1 } })).toMatchObject({
        existed: true,
      });
    }),
  );
}

function atOnceTests(on: On): void {
  test(
    "[A55] of many who register the same at once one does, and all get the same",
    on(async ({ store }) => {
      const all = await Promise.all(Array.from({ length: 8 }, () => store.register(build)));
      expect(all.filter(({ existed }) => !existed)).toHaveLength(1);
      expect(new Set(all.map(({ key }) => key)).size).toBe(1);
    }),
  );

  test(
    "[A55] a registration whose answer was lost may be repeated",
    on(async ({ store, faults }) => {
      faults.losesAnswer = true;
      expect(await rejection(store.register(build))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      expect(await store.register(build)).toMatchObject({ existed: true });
    }),
  );
}
