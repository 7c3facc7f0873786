import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { workflow, type RunHistory } from "holdfast";
import { fake, replayHistory, surviveCrashes, testHoldfast } from "holdfast/testing";
import { cancelled, charge, subscription } from "./subscription.ts";

// Runs with `node --import tsx --test examples/subscription.test.ts`; the same works in Vitest and Jest.
const ada = { mail: "ada@example.org", cents: 900 };

test("a trial of 30 days ends with a charge, after an hour without an answer", async () => {
  const charged = fake(charge, { throws: new Error("no answer") }, { returns: { receipt: "r-1" } });
  const holdfast = await testHoldfast([subscription, charged]);
  const began = holdfast.now().getTime();
  const { receipt } = await holdfast.run(subscription, ada);
  assert.equal(receipt, "r-1");
  assert.deepEqual(
    charged.calls.map(({ input }) => input),
    [900, 900],
  );
  const days = (holdfast.now().getTime() - began) / 86_400_000;
  assert.ok(days > 30 && days < 31);
  await holdfast.close();
});

test("who cancels on day 29 is not charged", async () => {
  const charged = fake(charge, { returns: { receipt: "r-1" } });
  const holdfast = await testHoldfast([subscription, charged]);
  const run = await holdfast.start(subscription, ada);
  await holdfast.skip("29 days");
  await run.signal(cancelled, { reason: "too dear" });
  assert.equal((await run.result()).ended, "too dear");
  assert.equal(charged.calls.length, 0);
  await holdfast.close();
});

test("a crash at any event changes nothing", async () => {
  const { differences } = await surviveCrashes(subscription, ada, {
    functions: () => [fake(charge, { returns: { receipt: "r-1" } })],
  });
  assert.deepEqual(differences, []);
});

/** A run that was exported during its trial: `npx holdfast export <id> --output …`. */
const recorded = async (): Promise<RunHistory> => {
  const file = new URL("subscription.history.json", import.meta.url);
  return JSON.parse(await readFile(file, "utf8")) as RunHistory;
};

test("the code is safe for open runs", async () => {
  const outcome = await replayHistory(subscription, await recorded());
  assert.deepEqual(outcome, { kind: "matches" });
});

test("a change that is not is caught before it is deployed", async () => {
  const changed = workflow("subscriptions/trial", async (ctx, customer: typeof ada) => {
    await ctx.call(charge, customer.cents); // now before the trial
    await ctx.step("welcome", () => `Hello, ${customer.mail}`);
    await ctx.receive(cancelled, { timeout: "30 days" });
  });
  const outcome = await replayHistory(changed, await recorded());
  assert.equal(outcome.kind, "differs");
  if (outcome.kind !== "differs") return;
  assert.equal(outcome.error.code, "NONDETERMINISM");
  assert.equal(outcome.error.details["recorded"], 'step "welcome"');
  assert.match(String(outcome.error.details["actual"]), /^child .* of subscriptions\/charge/);
});
