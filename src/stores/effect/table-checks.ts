import type { Encoded } from "../../model/values/encoded.ts";
import { isStoredError } from "../../model/values/restored-error.ts";
import { sql } from "../../sql/statement.ts";
import { isUnchanged } from "../context.ts";
import { inScopes } from "../session-checks.ts";
import { byKey, tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";
import { effectColumns, stateOf } from "./effect-row.ts";
import type { EffectRow } from "./effect-row.ts";

interface OwnedEffect extends EffectRow {
  readonly session: number;
  readonly kind: string;
  readonly envelope: Encoded;
}

const effect = tableCheck<OwnedEffect>({
  table: "holdfast_effect",
  select: sql`
    SELECT ${effectColumns}, session, kind, envelope`,
  from: sql`FROM holdfast_effect t`,
  ...byKey,
  weight: sql`length(t.envelope) + COALESCE(length(t.outcome), 0)`,
  keyOf: ({ key }) => String(key),
  judge(row, { decode, agrees, bytes }) {
    const state = stateOf(row);
    if (state.kind === "settled" && !isUnchanged({ bytes }, state.value))
      return "Its outcome does not match its hash.";
    const envelope = decode(row.envelope);
    const { kind } = Object(envelope) as { readonly kind?: unknown };
    if (kind !== row.kind) return "Its envelope is of another kind.";
    if (!agrees("effect", 1, envelope, row.hash)) return "Its envelope does not match its hash.";
    if (state.kind !== "settled") return undefined;
    const value = decode(state.value.text);
    return state.status === "failed" && !isStoredError(value)
      ? "Its failure is not an error."
      : undefined;
  },
  partners: inScopes,
});

export const effectChecks: readonly TableCheck[] = [effect];
