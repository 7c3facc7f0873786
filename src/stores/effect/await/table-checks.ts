import { awaitEventId, isAwaitSecret } from "../../../model/effect/await-token.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { isStoredError } from "../../../model/values/restored-error.ts";
import { withoutStacks } from "../../../model/values/stored-error.ts";
import { sql } from "../../../sql/statement.ts";
import { inScopes } from "../../session-checks.ts";
import { byKey, tableCheck } from "../../table-check.ts";
import type { CheckTools, TableCheck } from "../../table-check.ts";
import { awaitEventTable, recordOf } from "./event-row.ts";
import type { EventRow } from "./event-row.ts";

interface SecretRow {
  readonly id: number;
  readonly secret: Encoded;
}

const secret = tableCheck<SecretRow>({
  table: "holdfast_await_secret",
  select: sql`SELECT t.id, t.secret`,
  from: sql`FROM holdfast_await_secret t`,
  order: sql`t.id`,
  behind: ({ id }) => sql`t.id > ${id}`,
  keyOf: ({ id }) => String(id),
  judge: (row, { decode }) =>
    isAwaitSecret(decode(row.secret)) ? undefined : "It holds no secret.",
});

const event = tableCheck<EventRow>({
  table: awaitEventTable,
  select: sql`
    SELECT t.key, t.id, t.session, t.scope_kind, t.scope, t.name, t.state, t.opened_at, t.due_at, t.settled_at,
      t.revoked_at, t.hash, t.payload`,
  from: sql`FROM holdfast_await_event t`,
  ...byKey,
  weight: sql`COALESCE(length(t.payload), 0)`,
  keyOf: ({ id }) => id,
  judge(row, tools) {
    recordOf(row);
    const { session, scope_kind: scopeKind, scope, name: key } = row;
    const named = { session, scopeKind, scope, key };
    if (awaitEventId(tools.sha256Hex, named) !== row.id)
      return "Its id is not that of its scope and key.";
    return faultOfAnswer(row, tools);
  },
  partners: inScopes,
});

/**
 * Compares an answer with its hash. Stacks differ between machines and are not part of the hash.
 */
function faultOfAnswer(
  { state, payload, hash: recorded }: EventRow,
  { decode, agrees }: CheckTools,
): string | undefined {
  if (payload === null) return undefined;
  const value = decode(payload);
  if (state !== "failed")
    return agrees("await-value", 1, value, recorded ?? "")
      ? undefined
      : "Its value does not match its hash.";
  if (!isStoredError(value)) return "Its failure is not an error.";
  return agrees("await-error", 1, withoutStacks(value), recorded ?? "")
    ? undefined
    : "Its error does not match its hash.";
}

export const awaitChecks: readonly TableCheck[] = [secret, event];
