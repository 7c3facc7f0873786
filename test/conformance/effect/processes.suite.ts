import { describe, expect, test } from "vitest";
import { run, sql } from "../../../src/kernel.ts";
import { processEffects } from "../../../src/effects.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { inCommands } from "./commands-fixture.ts";
import type { InCommandFixture } from "./commands-fixture.ts";
import { createSession, until } from "../lease/leased-sessions.ts";
import { refused, storedEffects, turn } from "./fixture.ts";
import { pastChecks } from "../past-checks.ts";

export function effectProcessesSuite(backend: Backend): void {
  const fixture = inCommands(backend);
  describe("starting a process as an effect", () => {
    startTests(fixture);
  });
  describe("commands to processes as effects", () => {
    commandTests(fixture);
  });
}

const build = {
  id: "build:7",
  kind: "tool",
  input: { branch: "main" },
  eventTypes: [{ name: "signal.go" }],
};

function startTests(fixture: InCommandFixture): void {
  test(
    "[AX10] registers it and grants its handle in one transaction, once",
    fixture(async ({ commands, registry, faults, database }) => {
      const { writes } = faults;
      const options = { grant: "s", descriptor: { label: "the build" } };
      const started = { id: "build:7", existed: false };
      expect(await commands.start(turn, build, options)).toEqual(started);
      expect(faults.writes).toBe(writes + 1);
      expect(await registry.hasHandle("build:7", "s")).toBe(true);
      expect(await commands.start(turn, build, options)).toEqual(started);
      expect(faults.writes).toBe(writes + 1);
      const rows = await storedEffects(database);
      expect(rows).toMatchObject([
        { replay_key: "process:start:build%3A7", kind: "process.start" },
      ]);
      expect(JSON.stringify(rows)).not.toContain("main");
      // Another scope gets the same process, and knows that it was there.
      const next = { ...turn, id: "t2" };
      expect(await commands.start(next, build)).toEqual({
        id: "build:7",
        existed: true,
      });
    }),
  );

  test(
    "[AX10] registers nothing when the handle cannot be granted, and says so again",
    fixture(async ({ commands, registry }) => {
      for (let again = 0; again < 2; again += 1)
        expect(await rejection(commands.start(turn, build, { grant: "nobody" }))).toMatchObject({
          code: "SESSION_NOT_FOUND",
        });
      expect(await registry.get("build:7")).toBeUndefined();
    }),
  );

  test(
    "another content under the same key is a conflict that names the part",
    fixture(async (at) => {
      const { commands } = at;
      await commands.start(turn, build, { grant: "s" });
      expect(
        await refused(at, () => commands.start(turn, { ...build, input: {} }, { grant: "s" })),
      ).toMatchObject({
        code: "EFFECT_CONFLICT",
        details: { path: "$.input.parts.input" },
      });
      expect(await refused(at, () => commands.start(turn, build))).toMatchObject({
        code: "EFFECT_CONFLICT",
        details: { path: "$.input.grant" },
      });
    }),
  );
}

function commandTests(fixture: InCommandFixture): void {
  test(
    "a start of what was pruned since tells that it existed, and grants nothing",
    fixture(async ({ commands, registry }) => {
      await registry.register(build);
      await registry.complete("build:7", { kind: "completed", value: 1 });
      await registry.prune({ olderThan: 0 });
      expect(await commands.start(turn, build, { grant: "s" })).toEqual({
        id: "build:7",
        existed: true,
      });
      expect((await registry.grants("build:7")).items).toEqual([]);
    }),
  );

  test(
    "a list stays what it was for its call; another call is another list",
    fixture(async ({ commands, registry }) => {
      await commands.start(turn, build, { grant: "s" });
      const listed = [{ id: "build:7", kind: "tool", label: null, status: "running" }];
      const page = { items: listed, damaged: [], next: undefined };
      expect(await commands.list(turn, "s")).toEqual(page);
      await registry.complete("build:7", { kind: "completed", value: 1 });
      expect(await commands.list(turn, "s")).toEqual(page);
      expect(await commands.list(turn, "s", { call: "2" })).toMatchObject({
        items: [{ status: "completed" }],
      });
      expect(await commands.list(turn, "s", { live: true })).toMatchObject({
        items: [],
      });
    }),
  );

  test(
    "a list is a page, each an effect of its own, and names what cannot be read",
    fixture(async ({ commands, registry, database }) => {
      for (const id of ["p1", "p2", "p3"]) {
        await registry.register({ id, kind: "tool" });
        await registry.grant(id, "s");
      }
      await database.write("damage", () =>
        pastChecks(database, sql`UPDATE holdfast_process SET status = 'weird' WHERE id = 'p2'`),
      );
      const first = await commands.list(turn, "s", { limit: 2 });
      expect(first).toEqual({
        items: [{ id: "p1", kind: "tool", label: null, status: "running" }],
        damaged: [{ table: "holdfast_process", key: "p2" }],
        next: expect.any(String) as string,
      });
      const rest = { limit: 2, after: first.next ?? "" };
      expect(await commands.list(turn, "s", rest)).toMatchObject({
        items: [{ id: "p3" }],
        next: undefined,
      });
      // As they were recorded.
      await database.write("mend", () => run(sql`UPDATE holdfast_process SET status = 'running'`));
      await registry.revoke("p3", "s");
      expect(await commands.list(turn, "s", { limit: 2 })).toEqual(first);
      expect(await commands.list(turn, "s", rest)).toMatchObject({
        items: [{ id: "p3" }],
      });
      for (const limit of [0, 1_001])
        expect(await rejection(commands.list(turn, "s", { limit }))).toMatchObject({
          code: "OPTION_INVALID",
        });
      for (const wrong of [{ after: "p2" }, { ...rest, live: true }])
        expect(await rejection(commands.list(turn, "s", wrong))).toMatchObject({
          code: "CURSOR_INVALID",
        });
    }),
  );

  test(
    "handles are moved once, all or none",
    fixture(async ({ commands, registry }) => {
      await commands.start(turn, build, { grant: "s" });
      await commands.transfer(turn, "s", "other", ["build:7"]);
      await registry.transfer("other", "s", ["build:7"]);
      await commands.transfer(turn, "s", "other", ["build:7"]);
      expect(await registry.hasHandle("build:7", "s")).toBe(true);
      const call = commands.transfer(turn, "s", "other", ["build:7", "none"]);
      expect(await rejection(call)).toMatchObject({
        code: "PROCESS_NOT_FOUND",
      });
      expect(await registry.hasHandle("build:7", "other")).toBe(false);
    }),
  );

  test(
    "no more handles are moved at once than by the registry itself",
    fixture(async (at) => {
      const { commands } = at;
      const many = Array.from({ length: 1_001 }, (_, n) => `p${n}`);
      const call = (): Promise<void> => commands.transfer(turn, "s", "other", many);
      expect(await refused(at, call)).toMatchObject({
        code: "OPTION_INVALID",
        details: { option: "processes" },
      });
      // As many as are allowed are looked for.
      expect(
        await rejection(commands.transfer(turn, "s", "other", many.slice(0, 1_000))),
      ).toMatchObject({ code: "PROCESS_NOT_FOUND" });
    }),
  );

  test(
    "a process is asked to stop once, and an unknown one never",
    fixture(async ({ commands, registry }) => {
      await commands.start(turn, build);
      const asked = { process: "build:7", sequence: 1, status: "running" };
      expect(await commands.cancel(turn, "build:7", { reason: "late" })).toEqual(asked);
      expect(await commands.cancel(turn, "build:7", { reason: "late" })).toEqual(asked);
      expect(await rejection(commands.cancel(turn, "build:7", { reason: "other" }))).toMatchObject({
        code: "EFFECT_CONFLICT",
      });
      expect(await commands.cancel(turn, "build:7", { reason: "other", call: "2" })).toMatchObject({
        sequence: 2,
      });
      expect(await rejection(commands.cancel(turn, "none"))).toMatchObject({
        code: "PROCESS_NOT_FOUND",
      });
      await registry.register({ id: "none", kind: "tool" });
      expect(await rejection(commands.cancel(turn, "none"))).toMatchObject({
        code: "PROCESS_NOT_FOUND",
      });
    }),
  );

  test(
    "a signal is sent once for each key",
    fixture(async ({ commands, registry }) => {
      await commands.start(turn, build);
      for (const key of ["a", "a", "b"])
        await commands.signal(turn, "build:7", "go", { n: 1 }, { key });
      const last = await registry.waitForSignal("build:7", "go", 2, {
        timeout: 0,
      });
      expect(last).toMatchObject({ sequence: 2, ordinal: 2 });
      expect(
        await rejection(commands.signal(turn, "build:7", "stop", 1, { key: "c" })),
      ).toMatchObject({ code: "EVENT_TYPE_UNDECLARED" });
    }),
  );

  test(
    "the end of a process is waited for without a claim, and recorded when it comes",
    fixture(async ({ commands, registry, database, faults, clock }) => {
      await commands.start(turn, build);
      const waiting = commands.waitForEnd(turn, "build:7");
      await until(() => faults.listeners === 1);
      expect(await storedEffects(database)).toHaveLength(1);
      expect(clock.sleepers).toBe(0);
      const output = { kind: "completed", value: { url: "x" } } as const;
      await registry.complete("build:7", output);
      expect(await waiting).toEqual(output);
      const { writes } = faults;
      expect(await commands.waitForEnd(turn, "build:7")).toEqual(output);
      expect(faults.writes).toBe(writes);
      const late = commands.waitForEnd(turn, "other", { timeout: 0 });
      expect(await rejection(late)).toMatchObject({
        code: "PROCESS_NOT_FOUND",
      });
      await registry.register({ id: "other", kind: "tool" });
      expect(await rejection(commands.waitForEnd(turn, "other"))).toMatchObject({
        code: "PROCESS_NOT_FOUND",
      });
      expect(
        await rejection(commands.waitForEnd({ ...turn, id: "t2" }, "other", { timeout: 0 })),
      ).toMatchObject({ code: "DEADLINE_EXCEEDED" });
    }),
  );

  test(
    "a session is deleted once, with its report, by a scope that is not its own",
    fixture(async (at) => {
      const { commands, registry, database } = at;
      const operation = { kind: "operation", id: "o1" };
      await commands.start(operation, build, { grant: "other" });
      const own = { kind: "turn", session: "other", id: "t" };
      expect(await refused(at, () => commands.deleteSession(own, "other"))).toMatchObject({
        code: "EFFECT_SCOPE_INVALID",
        details: { path: "scope.session" },
      });
      const report = await commands.deleteSession(operation, "other");
      expect(report).toMatchObject({
        existed: true,
        processes: { revoked: 1, orphaned: ["build:7"], preserved: [] },
      });
      await createSession(database, "other", 2);
      expect(await commands.deleteSession(operation, "other")).toEqual(report);
      expect(await registry.hasHandle("build:7", "other")).toBe(false);
    }),
  );

  test(
    "options of effects are for effects alone: sessions and processes take the rest",
    fixture(async ({ database, clock }) => {
      const options = { clock, lease: "1 min", replayOnly: false } as const;
      const commands = processEffects(database, options);
      const operation = { kind: "operation", id: "o1" };
      await commands.start(operation, build);
      expect(await commands.deleteSession(operation, "other")).toMatchObject({
        existed: true,
      });
    }),
  );

  test(
    "strict replay gives no command",
    fixture(async (at) => {
      const { database, clock } = at;
      const strict = processEffects(database, { clock, replayOnly: true });
      const key = "k";
      for (const call of [
        () => strict.start(turn, build),
        () => strict.list(turn, "s"),
        () => strict.transfer(turn, "s", "other", []),
        () => strict.waitForEnd(turn, "build:7"),
        () => strict.cancel(turn, "build:7"),
        () => strict.signal(turn, "build:7", "go", 1, { key }),
        () => strict.deleteSession({ kind: "operation", id: "o" }, "other"),
      ])
        expect(await refused(at, call)).toMatchObject({
          code: "EFFECT_NOT_RECORDED",
        });
    }),
  );
}
