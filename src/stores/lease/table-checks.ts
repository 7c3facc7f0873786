import { sql } from "../../sql/statement.ts";
import { inSessions } from "../session-checks.ts";
import { tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";
import { leaseStateOf } from "./lease-row.ts";
import type { LeaseRow } from "./lease-row.ts";

interface OwnedLease extends LeaseRow {
  readonly session: number;
}

const lease = tableCheck<OwnedLease>({
  table: "holdfast_session_lease",
  select: sql`
    SELECT t.session, t.fence, t.given_back, t.owner, t.incarnation, t.process, t.token,
      t.claimed_at, t.renewed_at, t.expires_at`,
  from: sql`FROM holdfast_session_lease t`,
  order: sql`t.session`,
  behind: ({ session }) => sql`t.session > ${session}`,
  keyOf: ({ session }) => String(session),
  judge: (row) =>
    leaseStateOf(row) === undefined ? "It has a token but lacks other parts." : undefined,
  partners: (found) => inSessions(found),
});

export const leaseChecks: readonly TableCheck[] = [lease];
