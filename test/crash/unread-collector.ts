import { signal, workflow } from "../../src/runtime/definition/definitions.ts";

export const message = signal<number>("message");

export interface Collecting {
  readonly rounds: number;
  readonly timeoutMs: number;
}

/** Receives again and again, each time for a few milliseconds, and returns what it was given. */
export const collector = workflow("collector", async (ctx, given: Collecting) => {
  const received: number[] = [];
  for (let round = 0; round < given.rounds; round += 1) {
    const got = await ctx.receive(message, { timeout: given.timeoutMs });
    if (got !== undefined) received.push(got);
    // Now and then a step, so that what times out shares its append.
    if (round % 4 === 3)
      await Promise.all([
        ctx.step("beside", () => round),
        ctx
          .receive(message, { timeout: given.timeoutMs })
          .then((late) => late !== undefined && received.push(late)),
      ]);
  }
  return received;
});
