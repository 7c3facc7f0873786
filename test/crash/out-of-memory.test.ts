import { expect, test } from "vitest";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { kindsOf, until } from "../conformance/runtime/waiting.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

/** Node's own limit, so that it dies of its heap and not the machine of its memory. */
const starved = ["env", "NODE_OPTIONS=--max-old-space-size=48"];

test("a run whose workers die out of memory is parked after five deaths alone, and resumes with fixed code", () =>
  withFolder(async (folder) => {
    const holdfast = await holdfastOn(await folder.open());
    let seated = 0;
    const mended = workflow("hungry", async (ctx) => {
      await ctx.step("sit down", () => void (seated += 1));
      return "fed";
    });
    const run = await holdfast.start(mended, undefined, { id: "meal" });
    // A worker of something else, which notices the deaths of others.
    await holdfast.work([workflow("bystander", async () => "unmoved")]);
    let deaths = 0;
    while ((await run.status()) !== "parked") {
      const child = new Child("hungry-worker.ts", [folder.file()], starved);
      expect(await child.ended).not.toBe(0);
      expect(child.errors).toContain("heap out of memory");
      deaths += 1;
      await until(async () => (await run.status()) !== "running");
    }
    // The first one recorded the step, so it does not count. Three deaths make a suspect, and five alone convict it.
    expect(deaths).toBe(9);
    const kinds = await kindsOf(holdfast, "meal");
    expect(kinds.filter((kind) => kind === "stepFinished")).toHaveLength(1);
    expect((await holdfast.executions.lastEvent("meal")).event).toMatchObject({
      kind: "parked",
      code: "RUN_KEEPS_KILLING_WORKERS",
    });
    await run.unpark();
    await holdfast.work([mended]);
    expect(await run.result()).toBe("fed");
    expect(seated).toBe(0);
    await holdfast.close();
  }));
