import { rmSync, unlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import type { RuntimeEvent } from "../../src/runtime/runtime-event.ts";
import { rejection } from "../conformance/backend.ts";
import { until } from "../conformance/runtime/waiting.ts";
import { schedule } from "../../src/runtime/schedules/schedule.ts";
import { schedules } from "../../src/triggers.ts";
import { withFolder } from "./place.ts";

test("when the file is removed a wait for a result ends, and the worker stops with one error", () =>
  withFolder(async (folder) => {
    const said: RuntimeEvent[] = [];
    const holdfast = await openHoldfast(folder.file(), {
      onEvent: (event) => said.push(event),
    });
    const ticking = workflow("ticking", async (ctx) => {
      for (;;) await ctx.sleep(10);
    });
    await holdfast.work([ticking]);
    const run = await holdfast.start(ticking);
    const result = rejection(run.result());
    for (const end of ["", "-wal", "-shm"]) unlinkSync(`${folder.file()}${end}`);
    expect(await result).toMatchObject({ code: "FLUSH_FAILED" });
    await until(() => said.some(({ level }) => level === "error"));
    const errors = said.filter(({ level }) => level === "error");
    expect(errors).toHaveLength(1);
    expect(errors[0]?.message).toMatch(/^This worker stops\. .+ reopen/);
    expect(errors[0]?.message).toContain("close it and open it again, or end the process");
    expect(errors[0]?.details).toEqual({ code: "FLUSH_FAILED" });
    await holdfast.close({ timeout: 0 });
  }));

test("a worker that only waits notices that its file was removed, and stops", () =>
  withFolder(async (folder) => {
    const said: RuntimeEvent[] = [];
    const holdfast = await openHoldfast(folder.file(), {
      onEvent: (event) => said.push(event),
    });
    await holdfast.work([workflow("idle", () => "done")]);
    for (const end of ["", "-wal", "-shm"]) rmSync(`${folder.file()}${end}`, { force: true });
    await until(() => said.some(({ level }) => level === "error"));
    expect(said.filter(({ level }) => level === "error")).toMatchObject([
      { message: expect.stringMatching(/^This worker stops\. .+ reopen/) },
    ]);
    await holdfast.close({ timeout: 0 });
  }));

test("when the file is removed a scheduler stops, and a worker's says so once", () =>
  withFolder(async (folder) => {
    const said: RuntimeEvent[] = [];
    const holdfast = await openHoldfast(folder.file(), {
      onEvent: (event) => said.push(event),
    });
    const scheduler = schedules(holdfast.database).run({});
    const tick = workflow("tick", () => "tock");
    await holdfast.work([schedule("ticks", { every: "1h" }, tick)]);
    for (const end of ["", "-wal", "-shm"]) unlinkSync(`${folder.file()}${end}`);
    await rejection(holdfast.start(tick));
    await scheduler.stopped;
    await until(() => said.some(({ level }) => level === "error"));
    expect(said.filter(({ level }) => level === "error")).toMatchObject([
      { message: expect.stringMatching(/^This process no longer fires schedules/) },
    ]);
    await holdfast.close({ timeout: 0 });
  }));
