import type { ProcessLease } from "../../../src/processes.ts";
import type { ProcessFixture } from "../process/fixture.ts";

export const ada = { owner: "ada", incarnation: "first" };
export const adaAgain = { owner: "ada", incarnation: "second" };
export const bob = { owner: "bob", incarnation: "first" };

export async function registered(
  { store }: Pick<ProcessFixture, "store">,
  id = "p",
  more: object = {},
): Promise<void> {
  const eventTypes = [{ name: "e" }, { name: "signal.go" }];
  await store.register({ id, kind: "tool", eventTypes, ...more });
}

export async function claimed(
  { store }: Pick<ProcessFixture, "store">,
  claimant = ada,
  id = "p",
): Promise<ProcessLease> {
  const outcome = await store.claim(id, claimant, { lease: 1_000 });
  if (outcome.kind === "acquired") return outcome.lease;
  throw new Error(`${outcome.holder.owner} holds it.`);
}
