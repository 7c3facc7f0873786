import { expect, test } from "vitest";
import { rows, type Tx, sql, type Statement } from "../../src/kernel.ts";
import { effectContext } from "../../src/stores/effect/context.ts";
import { effectsOwned } from "../../src/stores/effect/effect-row.ts";
import { forgetEffects } from "../../src/stores/effect/forget.ts";
import { removeOwned } from "../../src/stores/removal.ts";
import { askEffect, effectList, readEffect } from "../../src/stores/effect/read.ts";
import { withFolder } from "./place.ts";

const scope = { kind: "turn", id: "t", session: undefined };
const ref = { scope, replayKey: "k", attempt: 1 };
const effect = {
  ...ref,
  kind: "llm",
  envelope: "" as never,
  hash: "h",
  dueAt: null,
};
const after = ["a", 1] as const;

/** The statements of a body that finds nothing. */
function statementsOf(body: Tx<unknown>): readonly Statement[] {
  const found: Statement[] = [];
  for (let step = body.next(); step.done !== true;) {
    const { statement, want } = step.value;
    if (statement !== undefined) found.push(statement);
    const answer = want === "rows" ? [] : want === "run" ? 0 : undefined;
    step = body.next(answer);
  }
  return found;
}

test("asking, reading, listing and forgetting go by the index of keys and sort nothing", () =>
  withFolder(async (folder) => {
    const database = await folder.open();
    const context = effectContext(database, undefined);
    const page = effectList.given(context, { kind: "turn", id: "t" }).input;
    const bodies: readonly (() => Tx<unknown>)[] = [
      () => askEffect(context).one({ effect }),
      () => readEffect(context).one(ref),
      () => effectList.operation(context).one({ ...page, after }),
      () => forgetEffects(context).one({ scope, rowsMax: 9 }),
      () => removeOwned(effectsOwned, 1, 9),
    ];
    for (const body of bodies)
      for (const statement of statementsOf(body())) {
        const plan = await database.write("plan", () =>
          rows<{ detail: string }>(sql`EXPLAIN QUERY PLAN ${statement}`),
        );
        const steps = plan.map(({ detail }) => detail).join("; ");
        expect(steps).toContain("INDEX holdfast_effect_replay_key");
        expect(steps).not.toMatch(/TEMP B-TREE|SCAN holdfast_effect\b/);
      }
  }));
