import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import type { Mismatch } from "../../../src/model/execution/mismatch.ts";
import { sql } from "../../../src/sql/statement.ts";
import { activity, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { WorkflowContext } from "../../../src/runtime/definition/workflow-context.ts";
import { replayHistory } from "../../../src/testing.ts";
import type { Backend } from "../backend.ts";
import { childRequested } from "../execution/execution-events.ts";
import { pastChecks } from "../past-checks.ts";
import { onRuntime } from "./fixture.ts";
import { recordedRun, sleepAsked, stepDone } from "./recorded-run.ts";
import { until } from "./waiting.ts";

const someHash: unknown = expect.stringMatching(/^[0-9a-f]{64}$/);
const plain = { target: "", inputHash: null };
const charge = activity("charge", async (_, cents: number) => cents);

function childAsked(id: string, name: string): GivenEvent {
  return { ...childRequested("o:1", `${id}.o:1_1`, name), call: 1, input: 4 } as GivenEvent;
}

interface Case {
  readonly title: string;
  readonly events: (id: string) => readonly GivenEvent[];
  readonly code: (ctx: WorkflowContext) => Promise<unknown>;
  readonly mismatch: {
    readonly call: number;
    readonly version: number | null;
    readonly recorded: object | null;
    readonly actual: object | null;
  };
}

const cases: readonly Case[] = [
  {
    title: "a step with another name",
    events: () => [stepDone(1, "charge", "s3cret")],
    code: (ctx) => ctx.step("refund", () => "s3cret"),
    mismatch: {
      call: 1,
      version: 2,
      recorded: { ...plain, kind: "step", name: "charge", codeVersion: "v1" },
      actual: { ...plain, kind: "step", name: "refund", codeVersion: "v2" },
    },
  },
  {
    title: "a sleep of another length",
    events: (id) => [sleepAsked(id, 1, 1_000)],
    code: (ctx) => ctx.sleep(2_000),
    mismatch: {
      call: 1,
      version: 2,
      recorded: { ...plain, kind: "sleep", name: "", target: "for 1000 ms", codeVersion: "v1" },
      actual: { ...plain, kind: "sleep", name: "", target: "for 2000 ms", codeVersion: "v2" },
    },
  },
  {
    title: "a child with another input",
    events: (id) => [childAsked(id, "charge")],
    code: (ctx) => ctx.call(charge, 5),
    mismatch: {
      call: 1,
      version: 2,
      recorded: {
        kind: "child",
        name: "charge",
        target: "o:1_1",
        inputHash: someHash,
        codeVersion: "v1",
      },
      actual: {
        kind: "child",
        name: "charge",
        target: "o:1_1",
        inputHash: someHash,
        codeVersion: "v2",
      },
    },
  },
  {
    title: "a request that the log does not have",
    events: (id) => [sleepAsked(id, 2, 1_000)],
    code: (ctx) => Promise.all([ctx.sleep(5), ctx.sleep(1_000)]),
    mismatch: {
      call: 1,
      version: null,
      recorded: null,
      actual: { ...plain, kind: "sleep", name: "", target: "for 5 ms", codeVersion: "v2" },
    },
  },
  {
    title: "no call, and an error",
    events: () => [stepDone(1, "charge", "s3cret")],
    code: () => Promise.reject(new Error("s3cret")),
    mismatch: {
      call: 1,
      version: 2,
      recorded: { ...plain, kind: "step", name: "charge", codeVersion: "v1" },
      actual: null,
    },
  },
];

/** A parked run tells the recorded and the actual call as fields. */
export function runtimeMismatchSuite(backend: Backend): void {
  describe("the mismatch of a parked run", () => {
    for (const { title, events, code, mismatch } of cases)
      test(
        `[RN1] is in its log, its standing and its history, without values: ${title}`,
        onRuntime(backend, async ({ holdfast }) => {
          const changed = workflow("changing", code);
          await recordedRun(holdfast, "r", "changing", events("r"));
          await holdfast.work([changed], { codeVersion: "v2" });
          const run = holdfast.get(changed, "r");
          await until(async () => (await run.status()) === "parked");
          const { event } = await holdfast.executions.lastEvent("r");
          expect(event).toMatchObject({ kind: "parked", code: "NONDETERMINISM" });
          const told = (event as { mismatch?: Mismatch }).mismatch;
          expect(told).toEqual(mismatch);
          expect(told?.recorded).not.toEqual({ ...told?.actual, codeVersion: "v1" });
          expect(JSON.stringify(told)).not.toContain("s3cret");
          expect((await holdfast.executions.get("r")).interruption).toMatchObject({ mismatch });
          const { items } = await holdfast.runs.list({ status: "parked" });
          expect(items).toMatchObject([{ interruption: { mismatch } }]);
          const history = await run.history();
          expect(history.events.at(-1)?.event["mismatch"]).toEqual(mismatch);
          expect(await replayHistory(changed, history, { codeVersion: "v2" })).toMatchObject({
            kind: "differs",
            error: { details: { mismatch: { call: mismatch.call, version: mismatch.version } } },
          });
          expect((await holdfast.maintenance.check()).damaged).toEqual([]);
        }),
      );

    test(
      "[RN1] does not keep the run from going on under the code that fits, nor a copy from being made",
      onRuntime(backend, async ({ holdfast, another }) => {
        const named = (name: string) =>
          workflow("changing", async (ctx) => [
            await ctx.step(name, () => "anew"),
            await ctx.step("then", () => "after"),
          ]);
        await recordedRun(holdfast, "r", "changing", [stepDone(1, "charge", "before")]);
        await holdfast.work([named("refund")]);
        const run = holdfast.get(named("charge"), "r");
        await until(async () => (await run.status()) === "parked");
        await holdfast.close({ timeout: "2s" });
        const mended = await another();
        const { nextVersion } = await mended.executions.get("r");
        const copy = await mended.get(named("charge"), "r").fork(nextVersion - 1, { id: "copy" });
        await mended.work([named("charge")]);
        await mended.get(named("charge"), "r").unpark();
        expect(await mended.get(named("charge"), "r").result()).toEqual(["before", "after"]);
        expect(await copy.result()).toEqual(["before", "after"]);
      }),
    );

    test(
      "[RN1] is left out when the recorded call is damaged, and for other reasons",
      onRuntime(backend, async ({ holdfast, database }) => {
        const changed = workflow("changing", (ctx) => ctx.step("refund", () => 1));
        const started = workflow("billing", async () => 1);
        await recordedRun(holdfast, "r", "changing", [stepDone(1, "charge", 5)]);
        await database.write("edit", () =>
          pastChecks(
            database,
            sql`UPDATE holdfast_execution_event SET body = '{"name":5}' WHERE kind = 'stepFinished'`,
          ),
        );
        await holdfast.start(started, undefined, { id: "other" });
        await holdfast.work([changed, activity("billing", () => 2)]);
        for (const [id, code] of [
          ["r", "NONDETERMINISM"],
          ["other", "FUNCTION_MISMATCH"],
        ] as const) {
          await until(async () => (await holdfast.executions.get(id)).status === "parked");
          const { event } = await holdfast.executions.lastEvent(id);
          expect(event).toMatchObject({ kind: "parked", code });
          expect(event).not.toHaveProperty("mismatch");
        }
      }),
    );

    test(
      "[RN1] is not there in older logs, and a damaged one is found",
      onRuntime(backend, async ({ holdfast, database }) => {
        const { executions, maintenance } = holdfast;
        await executions.create({ id: "r", function: "f" });
        await executions.append("r", 1, [
          { kind: "parked", code: "NONDETERMINISM", reason: "words", codeVersion: null },
        ]);
        const { interruption } = await executions.get("r");
        expect(interruption).toMatchObject({ kind: "parked", reason: "words" });
        expect(interruption).not.toHaveProperty("mismatch");
        await database.write("edit", () =>
          pastChecks(
            database,
            sql`UPDATE holdfast_execution_event
              SET body = '{"code":"C","reason":"r","codeVersion":null,"mismatch":{"call":1}}'
              WHERE kind = 'parked'`,
          ),
        );
        await expect(executions.get("r")).rejects.toMatchObject({ code: "CORRUPT_ROW" });
        expect(await executions.list()).toMatchObject({
          items: [],
          damaged: [{ table: "holdfast_execution", key: "r" }],
        });
        expect((await maintenance.check()).damaged).toMatchObject([
          { reason: expect.stringContaining("Its mismatch is damaged.") },
        ]);
      }),
    );
  });
}
