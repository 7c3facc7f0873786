import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Holdfast, openHoldfast, signal, workflow } from "holdfast";

// Three releases of one workflow, under open runs. Each would be a separate
// deployment; here they follow one another in one process.
const confirmed = signal("confirmed");

const first = workflow("sign-up", async (ctx, mail: string) => {
  await ctx.step("create account", () => console.log(`create ${mail}`));
  await ctx.receive(confirmed);
  return `${mail} is in`;
});

// A new first step. Runs that started earlier have no record of it:
// `patched` is false for them, and true for new runs.
const second = workflow("sign-up", async (ctx, mail: string) => {
  if (ctx.patched("check the address"))
    await ctx.step("check address", () => console.log(`check ${mail}`));
  await ctx.step("create account", () => console.log(`create ${mail}`));
  await ctx.receive(confirmed);
  return `${mail} is in`;
});

// No run of the first release is left, so the `if` can go. Runs that recorded
// the patch continue.
const third = workflow("sign-up", async (ctx, mail: string) => {
  await ctx.step("check address", () => console.log(`check ${mail}`));
  await ctx.step("create account", () => console.log(`create ${mail}`));
  await ctx.receive(confirmed);
  return `${mail} is in`;
});

const folder = mkdtempSync(join(tmpdir(), "holdfast-code-change-"));

/** A deployment: works with one release, and closes. */
async function deploy(
  signUp: typeof first,
  body: (holdfast: Holdfast) => Promise<void>,
): Promise<void> {
  const holdfast = await openHoldfast(join(folder, "users.db"));
  await holdfast.work([signUp]);
  await body(holdfast);
  await holdfast.close();
}

/** Starts a run and returns when it is blocked. */
async function begin(holdfast: Holdfast, mail: string): Promise<void> {
  const run = await holdfast.start(first, mail, { id: mail });
  while ((await run.status()) !== "blocked") await new Promise((resolve) => setTimeout(resolve, 5));
}

async function end(holdfast: Holdfast, mail: string): Promise<void> {
  const run = holdfast.get(first, mail);
  await run.signal(confirmed);
  console.log(await run.result());
}

await deploy(first, (holdfast) => begin(holdfast, "ada"));
await deploy(second, async (holdfast) => {
  await begin(holdfast, "bob");
  await end(holdfast, "ada"); // under the old code path, without the check
});
await deploy(third, (holdfast) => end(holdfast, "bob"));
rmSync(folder, { recursive: true });

// Output:
// create ada
// check bob
// create bob
// ada is in
// bob is in
