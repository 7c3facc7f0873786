import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../src/kernel.ts";
import { executions } from "../../src/executions.ts";
import { schedules } from "../../src/triggers.ts";
import { sessions } from "../../src/sessions.ts";
import { until } from "../conformance/runtime/waiting.ts";
import { Child } from "./child.ts";
import { pendingWaits } from "./pending-waits.ts";

/** A database that children are told of, open in this process. */
export interface LingeringFixture {
  readonly place: string;
  readonly database: Database;
  readonly dispose: () => Promise<void>;
}

/** What keeps a process alive and what does not: each in a process that does nothing else. */
export function lingeringSuite(open: () => Promise<LingeringFixture>): void {
  let fixture: LingeringFixture;
  beforeAll(async () => {
    fixture = await open();
    await sessions(fixture.database).create("s");
  });
  afterAll(() => fixture.dispose());
  let child: Child;
  const started = (...order: readonly string[]): Child =>
    (child = new Child("lingering.ts", [fixture.place, ...order]));
  // One that a failed test has left would wait for ever.
  afterEach(() => child.kill());

  describe("a process lives on while it waits with", () => {
    test.each(Object.entries(pendingWaits))(
      "%s: until its time is over, and until another process answers",
      async (name, { prepare }) => {
        const answer = await prepare(fixture.database);
        started("wait", name);
        await child.reported(1);
        // One that needs no answer may have come further meanwhile.
        expect(child.lines[0]).toBe("DEADLINE_EXCEEDED");
        await answer();
        expect(await child.ended).toBe(0);
        expect(child.failures).toBe("");
        expect(child.lines.slice(1)).toEqual(["answered", "end of script"]);
      },
    );
  });

  test("a process lives on while a scheduler runs, until that is closed", async () => {
    started("schedule");
    await child.reported(2);
    expect(child.lines).toEqual(["running", "end of script"]);
    await schedules(fixture.database).put("report", "soon", { every: "1 s" });
    expect(await child.ended).toBe(0);
    expect(child.failures).toBe("");
    expect(child.lines.slice(2)).toEqual(["fired"]);
  });

  test("[RT16] a process lives on while all its runs sleep, and gives them back when it is told to stop", async () => {
    started("work");
    await child.reported(2);
    expect(child.lines).toEqual(["end of script", "slept"]);
    const { get } = executions(fixture.database);
    await until(async () => (await get("napping")).state.pending.kind === "blocked");
    child.process.kill("SIGTERM");
    expect(await child.ended).toBe("SIGTERM");
    expect(child.failures).toBe("");
    expect((await get("napping")).state.pending).toMatchObject({
      kind: "blocked",
      leaseUntil: null,
    });
  });

  test("[RT16] a process that is told to stop while it asks for more ends by the signal, and not of what came too late", async () => {
    started("ask");
    await child.reported(1);
    child.process.kill("SIGTERM");
    expect(await child.ended).toBe("SIGTERM");
    expect(child.failures).toBe("");
  });

  test("a process lives on until each of its calls is answered", async () => {
    started("call", fixture.database.owner);
    expect(await child.ended).toBe(0);
    expect(child.failures).toBe("");
    const calls = ["write", "writes", "read", "pause", "writable", "liveness"];
    const heavy = ["check", "full check", "sizes", "exportRows", "backup"];
    expect(child.lines).toEqual([
      ...calls,
      ...(fixture.database.dialect === "sqlite" ? heavy : []),
      "close",
      "end of script",
    ]);
  });

  test.each([
    ["is only open", "open"],
    ["was to keep it alive and is closed", "close"],
    ["somebody subscribes to", "subscribe"],
    ["somebody keeps a lease in", "keep"],
  ])("a process ends by itself with a database that %s", async (_, order) => {
    started(order);
    expect(await child.ended).toBe(0);
    expect(child.failures).toBe("");
    expect(child.lines).toEqual(["end of script"]);
  });
}
