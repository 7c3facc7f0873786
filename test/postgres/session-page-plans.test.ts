import { expect, test } from "vitest";
import type { Tx, Statement } from "../../src/kernel.ts";
import { usageOut } from "../../src/stores/session/copy/copy-out.ts";
import { graphPage } from "../../src/stores/session/graph/graph.ts";
import { measureNodes } from "../../src/stores/session/read/sizes.ts";
import { lastUsage, sumUsage } from "../../src/stores/session/read/usage.ts";
import { reclaimSlice, removeRowsOf } from "../../src/stores/session/reclaim.ts";
import { sessionPlanContext as context } from "../fixtures/long-session.ts";
import { withNewPlace } from "./place.ts";
import type { Shell } from "./place.ts";
import { planOf, plans } from "./plans.ts";

/** What stands before the session asked for: 19 other sessions with most of the rows. */
const others = 60_000;
const own = 3_000;
const key = 20;
const until = 1_000_000;
const session = { id: "s" as never };

/** What is read or removed in pages or slices, however much others have. */
const paths: Readonly<Record<string, () => Tx<unknown>>> = {
  "a page of a graph": () => graphPage({ key, fork_node: null, fork_top: null }, 1, 500, until),
  "a page of sizes": () => measureNodes(context).one({ session, after: 1, limit: 500 }),
  "a page of usage to be copied": () =>
    usageOut(context).one({ session, after: 1, until, limit: 500 }),
  "a page of usage to be summed": () =>
    sumUsage(context).one({ session, after: 1, until, limit: 500 }),
  "the last entry of usage": () => lastUsage(key),
  "a slice of nodes to be removed": () =>
    reclaimSlice(context).one({
      session: key,
      at: 5,
      putUntil: 0,
      rowsMax: 500,
      before: undefined,
    }),
  "a slice of the rest to be removed": () => removeRowsOf(key, 500),
};

/** The statements of a body that finds its session and nothing else. */
function statementsOf(body: Tx<unknown>): readonly Statement[] {
  const found: Statement[] = [];
  const living = { ...session, key, generation: 1, revision: 0 };
  const root = {
    ...living,
    deleted_at: 1,
    importing_at: null,
    forked_from: null,
  };
  for (let step = body.next(); step.done !== true;) {
    const { statement, want } = step.value;
    const text = statement?.template.sqlite ?? "";
    const isRoot = want === "row" && /FROM holdfast_session\s/.test(text);
    if (statement !== undefined && !isRoot) found.push(statement);
    const nothing = want === "rows" ? [] : want === "run" ? 0 : undefined;
    step = body.next(isRoot ? root : nothing);
  }
  return found;
}

async function fill(shell: Shell): Promise<void> {
  const of = `CASE WHEN v <= ${others} THEN v % 19 + 1 ELSE ${key} END`;
  const numbers = `generate_series(1, ${others + own}) AS numbers (v)`;
  await shell.unsafe(`
    INSERT INTO holdfast_session_node (session, id, depth, messages, turn, at, kind, payload)
    SELECT ${of}, 'n' || v, 0, 0, 't', 1, 'k', '1' FROM ${numbers}`);
  await shell.unsafe(`
    INSERT INTO holdfast_session_usage (session, turn, ordinal, at, source, model,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens)
    SELECT ${of}, 't' || v, 0, 1, 's', 'm', 1, 1, 1, 1, 1 FROM ${numbers}`);
  await shell.unsafe(`
    INSERT INTO holdfast_session_turn (session, turn, hash, parts, result, committed_at)
    SELECT ${of}, 't' || v, 'h', '{}', '{}', 1 FROM ${numbers}`);
  await shell.unsafe("ANALYZE");
}

/** Along a primary key lie the rows of all sessions; one that is asked for by its key is found there. */
function isFault(step: string, next: string): boolean {
  return (
    /Seq Scan on holdfast_session_(node|usage|turn)\b/.test(step) ||
    /Sort Key: (holdfast_session_\w+\.|n\.)?(session|key)\b/.test(step) ||
    (/holdfast_session_(node|usage)_pkey/.test(step) && !/Index Cond: \(\(?key = /.test(next))
  );
}

test("no page and no slice of a session walks over other sessions' rows", () =>
  withNewPlace(async (place) => {
    await place.open();
    const shell = place.shell();
    await fill(shell);
    const faults: string[] = [];
    let count = 0;
    for (const [what, body] of Object.entries(paths))
      for (const statement of statementsOf(body())) {
        count += 1;
        for (const plan of plans) {
          const steps = await planOf(shell, statement, plan);
          for (const [index, step] of steps.entries())
            if (isFault(step, steps[index + 1] ?? "")) faults.push(`${what} (${plan}): ${step}`);
        }
      }
    expect(faults).toEqual([]);
    expect(count).toBeGreaterThan(20);
  }));
