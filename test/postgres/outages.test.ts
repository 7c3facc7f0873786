import { describe, expect, test } from "vitest";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import type { Holdfast } from "../../src/runtime/client/holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import type { RuntimeEvent } from "../../src/runtime/runtime-event.ts";
import { gate } from "../conformance/runtime/waiting.ts";
import { withCable } from "./cable.ts";
import { until } from "./place.ts";

const open = gate();
const waits = workflow("waits", async (ctx) =>
  ctx.step("wait", async () => {
    await open.opened;
    return "done";
  }),
);

/** A worker at the end of a cable, and what it says of the database being reached. */
async function withWorker(
  body: (given: {
    readonly holdfast: Holdfast;
    readonly cable: Parameters<Parameters<typeof withCable>[0]>[1];
    readonly heard: readonly string[];
  }) => Promise<void>,
): Promise<void> {
  await withCable(async (place, cable) => {
    const heard: string[] = [];
    const onEvent = ({ level, message, details }: RuntimeEvent): void => {
      if (message.includes("be reached")) heard.push([level, details["code"]].join(" ").trim());
    };
    const database = await place.open({}, cable.urlFor(place.url));
    const holdfast = await holdfastOn(database, {}, onEvent);
    await holdfast.work([waits]);
    try {
      await body({ holdfast, cable, heard });
    } finally {
      await holdfast.close({ timeout: "1s" });
    }
  });
}

const lost = "warn DATABASE_UNREACHABLE";

describe("a worker that is cut off from its server", () => {
  test("and has nothing to do warns once, and says when it is back, at each outage", () =>
    withWorker(async ({ cable, heard }) => {
      await cable.unplug();
      await until(() => heard.length === 1);
      expect(heard).toEqual([lost]);
      await cable.plugIn();
      await until(() => heard.length === 2);
      await cable.unplug();
      await until(() => heard.length === 3);
      await cable.plugIn();
      await until(() => heard.length === 4);
      expect(heard).toEqual([lost, "info", lost, "info"]);
    }));

  test("while it runs something says the same, and its run goes on", () =>
    withWorker(async ({ holdfast, cable, heard }) => {
      const run = await holdfast.start(waits);
      await until(async () => (await run.status()) === "running");
      await cable.unplug();
      await until(() => heard.length === 1);
      await cable.plugIn();
      open.open();
      expect(await run.result()).toBe("done");
      await until(() => heard.length === 2);
      expect(heard).toEqual([lost, "info"]);
    }));

  test("for a moment says nothing", () =>
    withWorker(async ({ holdfast, cable, heard }) => {
      open.open();
      await cable.unplug();
      await cable.plugIn();
      expect(await (await holdfast.start(waits)).result()).toBe("done");
      expect(heard).toEqual([]);
    }));

  test("by a network that falls silent warns too", () =>
    withWorker(async ({ cable, heard }) => {
      cable.freeze();
      await until(() => heard.length > 0);
      expect(heard).toEqual([lost]);
    }));
});
