import { usageOverflow } from "../../../model/session/errors.ts";
import { tokenKinds, type TokenUsage, type UsageEntry } from "../../../model/session/session.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { keysOf } from "../../../sql/dialect.ts";
import { row, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { onlyWait } from "../../method.ts";
import type { SessionContext } from "../context.ts";
import { sessionNamed, type SessionName } from "../../session-name.ts";
import { livingSession, type SessionRef } from "../../session-row.ts";

/** Inserts a row for each entry of a turn. The entry's place in the turn makes it unique. */
export function* writeUsage(
  session: number,
  turn: string,
  at: number,
  entries: readonly UsageEntry[],
): Tx<void> {
  for (const [ordinal, entry] of entries.entries())
    yield* run(sql`
      INSERT INTO holdfast_session_usage
        (session, turn, ordinal, at, source, model,
         input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens)
      VALUES (${session}, ${turn}, ${ordinal}, ${at}, ${entry.source}, ${entry.model},
        ${entry.inputTokens}, ${entry.outputTokens}, ${entry.cacheReadTokens}, ${entry.cacheWriteTokens}, ${entry.reasoningTokens})`);
}

/** The key of the last entry; 0 when there is none. */
export function* lastUsage(session: number): Tx<number> {
  const last = yield* row<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_session_usage WHERE ${keysOf(session, 0)} ORDER BY session DESC, key DESC LIMIT 1`);
  return last?.key ?? 0;
}

/** Takes a few milliseconds to read. */
const usagePerPage = 2_000;

/**
 * Sums the usage of a session up to the entry that was the last when the call began. Reads in
 * pages, so that a long ledger does not delay others.
 */
export async function usageOf(
  context: SessionContext,
  session: SessionName,
  options: WaitOptions | undefined,
): Promise<readonly UsageEntry[]> {
  const sums = new UsageSums();
  const wait = onlyWait(options);
  const { id, generation: given } = sessionNamed(session);
  let generation = given;
  let after: number | undefined = 0;
  let until: number | undefined;
  while (after !== undefined) {
    // A session that is deleted and created during the call is another one.
    const ref = { id, ...(generation !== undefined && { generation }) };
    const input = { session: ref, after, until, limit: usagePerPage };
    const page: SummedPage = await context.database.read(sumUsage(context), input, wait);
    sums.add(page.sums);
    ({ next: after, until, generation } = page);
  }
  return sums.entries();
}

interface UsagePage {
  readonly session: SessionRef;
  /** The last entry of the previous page. */
  readonly after: number;
  /** The last entry at the time of the first page. */
  readonly until: number | undefined;
  readonly limit: number;
}

interface Source {
  readonly source: string;
  readonly model: string;
}

/** Each number is summed in two halves, so that no sum overflows in SQL. */
type Halves = Source &
  Readonly<Record<`${keyof TokenUsage}${"High" | "Low"}`, number>> & {
    /** The first entry that used anything; null when no entry did. */
    readonly first: number | null;
  };

const half = 2 ** 26;

interface SummedPage {
  readonly generation: number;
  readonly until: number;
  readonly sums: readonly Halves[];
  /** The entry to continue from; undefined at the end. */
  readonly next: number | undefined;
}

/** Entries whose counts are all zero are ignored, even for the order of sources. */
const isUsed = sql`
  input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens > 0`;

/** Sums the usage per source and model in one page of entries. */
export const sumUsage = storeOperation("sumUsage", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, after, until: given, limit }: UsagePage): Tx<SummedPage> {
    const { key, generation } = yield* livingSession(session);
    const until = given ?? (yield* lastUsage(key));
    const sums = yield* rows<Halves & { readonly count: number; readonly last: number }>(sql`
      SELECT source, model, MIN(CASE WHEN ${isUsed} THEN key END) AS first, MAX(key) AS last, COUNT(*) AS count,
        CAST(SUM(input_tokens / ${half}) AS BIGINT) AS "inputTokensHigh",
        CAST(SUM(input_tokens % ${half}) AS BIGINT) AS "inputTokensLow",
        CAST(SUM(output_tokens / ${half}) AS BIGINT) AS "outputTokensHigh",
        CAST(SUM(output_tokens % ${half}) AS BIGINT) AS "outputTokensLow",
        CAST(SUM(cache_read_tokens / ${half}) AS BIGINT) AS "cacheReadTokensHigh",
        CAST(SUM(cache_read_tokens % ${half}) AS BIGINT) AS "cacheReadTokensLow",
        CAST(SUM(cache_write_tokens / ${half}) AS BIGINT) AS "cacheWriteTokensHigh",
        CAST(SUM(cache_write_tokens % ${half}) AS BIGINT) AS "cacheWriteTokensLow",
        CAST(SUM(reasoning_tokens / ${half}) AS BIGINT) AS "reasoningTokensHigh",
        CAST(SUM(reasoning_tokens % ${half}) AS BIGINT) AS "reasoningTokensLow"
      FROM (
        SELECT key, source, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens
        FROM holdfast_session_usage WHERE ${keysOf(key, after, until)} ORDER BY session, key LIMIT ${limit}) AS page
      GROUP BY source, model ORDER BY first`);
    const count = sums.reduce((sum, each) => sum + each.count, 0);
    const last = sums.reduce((max, each) => Math.max(max, each.last), 0);
    return {
      generation,
      until,
      sums,
      next: count < limit ? undefined : last,
    };
  },
});

/** Adds up pages exactly, however large the sums are. */
class UsageSums {
  /** In the order of first use. */
  readonly #sums = new Map<
    string,
    Source & { readonly tokens: Record<keyof TokenUsage, bigint> }
  >();

  add(page: readonly Halves[]): void {
    for (const found of page) {
      const { source, model, first } = found;
      if (first === null) continue;
      const name = JSON.stringify([source, model]);
      const sum = this.#sums.get(name) ?? { source, model, tokens: none() };
      this.#sums.set(name, sum);
      for (const kind of tokenKinds)
        sum.tokens[kind] +=
          BigInt(found[`${kind}High`]) * BigInt(half) + BigInt(found[`${kind}Low`]);
    }
  }

  /** @throws HoldfastError `USAGE_OVERFLOW` for a sum that is too large to be exact. */
  entries(): readonly UsageEntry[] {
    return [...this.#sums.values()].map(({ source, model, tokens }) => {
      for (const kind of tokenKinds)
        if (tokens[kind] > BigInt(Number.MAX_SAFE_INTEGER))
          throw usageOverflow(source, model, kind);
      return {
        source,
        model,
        inputTokens: Number(tokens.inputTokens),
        outputTokens: Number(tokens.outputTokens),
        cacheReadTokens: Number(tokens.cacheReadTokens),
        cacheWriteTokens: Number(tokens.cacheWriteTokens),
        reasoningTokens: Number(tokens.reasoningTokens),
      };
    });
  }
}

function none(): Record<keyof TokenUsage, bigint> {
  return {
    inputTokens: 0n,
    outputTokens: 0n,
    cacheReadTokens: 0n,
    cacheWriteTokens: 0n,
    reasoningTokens: 0n,
  };
}
