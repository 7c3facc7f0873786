import type { Database } from "../../src/sql/database.ts";
import { effects } from "../../src/stores/effect/effects.ts";
import type { Effects } from "../../src/stores/effect/effects.ts";
import type { EffectScope } from "../../src/stores/effect/scope.ts";
import { sessions } from "../../src/stores/session/sessions.ts";

/** One turn each of so many sessions. */
export async function turnsIn(database: Database, count: number): Promise<readonly EffectScope[]> {
  const store = sessions(database);
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const { id, generation } = await store.create(`chat-${index}`);
      return { kind: "turn", session: { id, generation }, id: "turn-1" };
    }),
  );
}

/** What a model is asked, and what it says: about 200 characters each. */
function envelopeOf(call: number): { kind: string; input: unknown } {
  return {
    kind: "llm",
    input: {
      model: "small",
      messages: [{ role: "user", text: `Question ${call}: ${"why? ".repeat(30)}` }],
    },
  };
}

function answerOf(call: number): unknown {
  return {
    role: "assistant",
    text: `Answer ${call}: ${"because. ".repeat(20)}`,
  };
}

/** Every scope makes its calls one after the other. Answers with effects per second. */
export async function executeAll(
  store: Effects,
  scopes: readonly EffectScope[],
  each: number,
): Promise<number> {
  const startedMs = performance.now();
  await Promise.all(
    scopes.map(async (scope) => {
      for (let call = 0; call < each; call += 1)
        await store.execute(scope, `call-${call}`, envelopeOf(call), () => answerOf(call));
    }),
  );
  return (scopes.length * each * 1_000) / (performance.now() - startedMs);
}

/** The same once it is recorded; nothing may be run. */
export async function replayAll(
  database: Database,
  scope: EffectScope,
  count: number,
): Promise<number> {
  const store = effects(database);
  const startedMs = performance.now();
  for (let call = 0; call < count; call += 1)
    await store.execute(scope, `call-${call}`, envelopeOf(call), () => {
      throw new Error("It was run again.");
    });
  return (count * 1_000) / (performance.now() - startedMs);
}
