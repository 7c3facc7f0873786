import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { timeoutMs } from "../depth.ts";

const moduleOf = (path: string): string =>
  JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href);

/** A test file of `node:test`, which waits for its process to end. */
const program = `
  import test from "node:test";
  import { signal, workflow } from ${moduleOf("index.ts")};
  import { testHoldfast } from ${moduleOf("testing.ts")};
  const go = signal("go");
  const nap = workflow("nap", async (ctx) => {
    await ctx.sleep("1 day");
    await ctx.receive(go, { timeout: "1 day" });
    return "slept";
  });
  test("fails before it closes", async () => {
    const holdfast = await testHoldfast([nap]);
    const waits = await holdfast.start(nap);
    await holdfast.skip("1 day");
    throw new Error(await holdfast.run(nap) + ", " + await waits.result());
  });
`;

describe("a test that does not close its Holdfast", () => {
  test("keeps no process, and gets its results", async () => {
    const args = ["--import", "tsx", "--input-type=module", "--eval", program];
    const ended = promisify(execFile)(process.execPath, args, {
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      timeout: timeoutMs,
    });
    await expect(ended).rejects.toMatchObject({
      code: 1,
      killed: false,
      stdout: expect.stringContaining("slept, slept") as string,
    });
  });
});
