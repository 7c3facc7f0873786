import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import type { ProcessOutput } from "../../../src/processes.ts";
import { expectSound } from "../sound.ts";
import { build } from "./build.ts";
import { onProcesses, fixtureOf, stored } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

export function processEndsSuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("ending a process", () => {
    endTests(on);
  });
  if (backend.survives)
    describe("a registry that is opened again", () => {
      reopenTests(backend);
    });
}

function reopenTests(backend: Backend): void {
  test("[A65] has its records, handles and outputs", () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000_000);
      const first = await place.open();
      const before = fixtureOf(place, first, clock);
      await before.sessions.create("s");
      await before.store.register(build);
      await before.store.grant("p", "s");
      await before.store.complete("p", { kind: "completed", value: 7 });
      const record = await before.store.get("p");
      await first.close();
      const { store } = fixtureOf(place, await place.open(), clock);
      expect(await store.get("p")).toEqual(record);
      expect(await store.hasHandle("p", "s")).toBe(true);
      expect(await store.waitForEnd("p")).toEqual({
        kind: "completed",
        value: 7,
      });
    }));

  test("[A56] refers to the same outside work, by the same rules", () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000_000);
      const first = await place.open();
      const before = fixtureOf(place, first, clock);
      await before.sessions.create("s");
      await before.store.register(build);
      const ref = { backend: "ci", id: "77" };
      await before.store.setExternalRef("p", ref);
      await first.close();
      const { store } = fixtureOf(place, await place.open(), clock);
      expect(await store.setExternalRef("p", ref)).toBe(false);
      expect(await rejection(store.setExternalRef("p", { ...ref, id: "78" }))).toMatchObject({
        code: "EXTERNAL_REF_CONFLICT",
      });
      expect(await store.get("p")).toMatchObject({ externalRef: ref });
    }));
}

function endTests(on: On): void {
  test(
    "[A65] completing gives those who wait the output, and the record is terminal",
    on(async ({ store, clock, database }) => {
      await store.register(build);
      const waiting = store.waitForEnd("p");
      clock.advance(7);
      const output = { kind: "completed", value: { url: "x" } } as const;
      expect(await store.complete("p", output)).toMatchObject({
        status: "completed",
        event: { type: "process.completed", end: "completed" },
      });
      expect(await waiting).toEqual(output);
      expect(await store.output("p")).toEqual(output);
      expect(await store.get("p")).toMatchObject({
        status: "completed",
        endedAt: 1_000_007,
        endedSequence: 1,
      });
      const before = await stored(database);
      expect(await store.complete("p", output)).toMatchObject({
        isReplay: true,
      });
      expect(
        await rejection(store.complete("p", { kind: "completed", value: "other" })),
      ).toMatchObject({ code: "REPLAY_KEY_CONFLICT" });
      expect(
        await rejection(store.complete("p", { kind: "cancelled", message: "no" })),
      ).toMatchObject({
        code: "PROCESS_TERMINAL",
        details: { id: "p", status: "completed" },
      });
      expect(
        await rejection(store.append("p", { type: "built", payload: 1, replayKey: "b" })),
      ).toMatchObject({ code: "PROCESS_TERMINAL" });
      expect(await stored(database)).toEqual(before);
      // What does not end a process may still be told of it.
      expect(await store.append("p", { type: "progress", payload: { percent: 1 } })).toMatchObject({
        status: "completed",
        event: { sequence: 2 },
      });
    }),
  );

  test.each([
    ["built", { n: 1 }, { kind: "completed", value: { n: 1 } }],
    [
      "broke",
      { why: "no disk" },
      {
        kind: "failed",
        code: "process_failed",
        message: "no disk",
        raw: "no disk",
      },
    ],
    [
      "broke",
      { why: { kind: "failed", code: "E7", message: "as it is" } },
      { kind: "failed", code: "E7", message: "as it is" },
    ],
    ["broke", { why: [1] }, { kind: "failed", code: "process_failed", message: "[1]", raw: [1] }],
  ])("a declared end %s with %j gives %j", (type, payload, output) =>
    on(async ({ store }) => {
      await store.register(build);
      await store.append("p", { type, payload, replayKey: "end" });
      expect(await store.waitForEnd("p")).toEqual(output);
    })(),
  );

  test(
    "[A64] a cancel request is an event and no state; completing as cancelled is one",
    on(async ({ store, clock }) => {
      await store.register(build);
      clock.advance(1);
      const first = await store.cancel("p", { reason: "too slow" });
      expect(first).toMatchObject({
        status: "running",
        event: {
          type: "process.cancel_requested",
          payload: { reason: "too slow" },
        },
      });
      clock.advance(1);
      expect(await store.cancel("p", { reason: "too slow" })).toMatchObject({
        isReplay: true,
      });
      expect(await store.cancel("p")).toMatchObject({
        isReplay: false,
        event: { sequence: 2 },
      });
      expect(await store.get("p")).toMatchObject({
        status: "running",
        cancelRequestedAt: 1_000_001,
      });
      await store.complete("p", { kind: "cancelled", message: "stopped" });
      expect(await store.get("p")).toMatchObject({ status: "cancelled" });
    }),
  );

  test(
    "those who wait get the control of an output, and the class and raw form of a failure",
    on(async ({ store, database }) => {
      const outputs: readonly ProcessOutput[] = [
        { kind: "completed", value: 1, control: { next: ["review"] } },
        {
          kind: "failed",
          class: "timeout",
          code: "E42",
          message: "too slow",
          raw: { seconds: 9 },
          control: "retry",
        },
        { kind: "cancelled", message: "stopped", raw: 1, control: null },
      ];
      const eventTypes = [
        {
          name: "ended",
          terminal: { state: "failed", output: { kind: "pointer", pointer: "/end" } },
        },
      ] as const;
      const [, failed] = outputs;
      await store.register({ id: "declared", kind: "k", eventTypes });
      await store.append("declared", { type: "ended", payload: { end: failed }, replayKey: "e" });
      expect(await store.output("declared")).toEqual(failed);
      for (const output of outputs) {
        const id = output.kind;
        await store.register({ id, kind: "k" });
        await store.complete(id, output);
        expect(await store.complete(id, output)).toMatchObject({ isReplay: true });
        expect(await store.waitForEnd(id)).toEqual(output);
        expect(
          await rejection(store.complete(id, { ...output, control: "other" } as ProcessOutput)),
        ).toMatchObject({ code: "REPLAY_KEY_CONFLICT" });
      }
      await expectSound(database);
    }),
  );

  test(
    "an output that is none is refused",
    on(async ({ store, database }) => {
      await store.register(build);
      const before = await stored(database);
      for (const output of [
        undefined,
        null,
        {},
        { kind: "completed" },
        { kind: "failed", message: "no code" },
        { kind: "done", value: 1 },
        { kind: "completed", value: 1, class: "c" },
        { kind: "failed", class: 5, code: "c", message: "m" },
      ])
        expect(await rejection(store.complete("p", output as never))).toMatchObject({
          code: "OPTION_INVALID",
        });
      expect(await stored(database)).toEqual(before);
    }),
  );
}
