import { describe, expect, test, vi } from "vitest";
import { Connection } from "../../src/backends/postgres/connection.ts";
import { loadDriver } from "../../src/backends/postgres/driver.ts";
import { TemplateTexts } from "../../src/backends/postgres/qualified.ts";
import { ServerClock } from "../../src/backends/postgres/server-clock.ts";
import { sessionTexts } from "../../src/backends/postgres/session-texts.ts";
import { workflow } from "../../src/index.ts";
import type { Warning } from "../../src/kernel.ts";
import { manualClock } from "../../src/model/time/clock.ts";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { serverUrl, until, withPlace } from "./place.ts";

async function withConnection(body: (connection: Connection) => Promise<void>): Promise<void> {
  const connection = await Connection.open({
    driver: await loadDriver(),
    url: serverUrl(),
    prepare: true,
    texts: sessionTexts({
      schema: "public",
      durability: "full",
      prepare: true,
    }),
    templates: new TemplateTexts("public"),
  });
  try {
    await body(connection);
  } finally {
    await connection.end();
  }
}

describe("the server's clock", () => {
  test("is used unless another is given, and its offset is reported", () =>
    withPlace(async (place) => {
      const [before] = await place.shell()`
        SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at`;
      const database = await place.open();
      const now = database.clock.now();
      expect(Number.isInteger(now)).toBe(true);
      expect(now).toBeGreaterThanOrEqual(Math.floor(before?.["at"] as number));
      // Same machine, so the offset is no more than a slow round trip.
      expect(Math.abs(database.stats().clockOffsetMs)).toBeLessThan(1_000);
      const mine = manualClock(5_000);
      const given = await place.open({ clock: mine });
      expect(given.clock).toBe(mine);
      expect(given.stats().clockOffsetMs).toBe(0);
    }));

  test("corrects a local clock that is wrong, and warns of it once", () =>
    withConnection(async (connection) => {
      const warnings: Warning[] = [];
      const clock = new ServerClock(
        (warning) => warnings.push(warning),
        () => 1_000,
      );
      await clock.measure(connection);
      expect(Math.abs(clock.now() - Date.now())).toBeLessThan(5_000);
      expect(clock.offsetMs).toBeGreaterThan(1_000_000_000);
      await clock.measure(connection);
      expect(warnings.map((warning) => warning.code)).toEqual(["CLOCK_SKEW"]);
      expect(warnings[0]?.message).toContain(String(clock.offsetMs).slice(0, 6));
    }));

  test("fires timers and keeps leases while the machine's clock is an hour behind", () =>
    withPlace(async (place) => {
      // The clocks differ, and that is said.
      const database = await place.open({ onWarning: () => undefined });
      const holdfast = await holdfastOn(database);
      const naps = workflow("naps", async (ctx) => {
        await ctx.sleep("20ms");
        return "rested";
      });
      const { executions } = holdfast;
      const leaseOf = async (id: string): Promise<unknown> => {
        const { pending } = (await executions.get(id)).state;
        return pending.kind === "locked" ? pending.leaseUntil : undefined;
      };
      const works = workflow("works", async (ctx) => {
        const { id } = ctx;
        return ctx.step("until its lease is renewed", async () => {
          const first = await leaseOf(id);
          await until(async () => (await leaseOf(id)) !== first);
          return "done";
        });
      });
      // Renewed at a third of it; the rest is for a machine that is slow.
      await holdfast.work([naps, works], { lease: "6s" });
      const machineTime = Date.now;
      const wallClock = vi.spyOn(Date, "now").mockImplementation(() => machineTime() - 3_600_000);
      try {
        const nap = await holdfast.start(naps, undefined);
        const work = await holdfast.start(works, undefined);
        expect(await nap.result()).toBe("rested");
        expect(await work.result()).toBe("done");
        // It was locked once: what moved its lease was a renewal.
        const { items } = await work.events();
        const locks = items.filter(({ event }) => event.kind === "locked");
        expect(locks).toHaveLength(1);
      } finally {
        wallClock.mockRestore();
        await holdfast.close();
      }
    }));
});
