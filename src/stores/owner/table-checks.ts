import { parseOwnerId } from "../../model/ids/prefixed-id.ts";
import { sql } from "../../sql/statement.ts";
import { tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";

interface OwnerRow {
  readonly id: string;
}

const owner = tableCheck<OwnerRow>({
  table: "holdfast_owner",
  select: sql`SELECT t.id, t.host, t.opened_at, t.died_at`,
  from: sql`FROM holdfast_owner t`,
  order: sql`t.id`,
  behind: ({ id }) => sql`t.id > ${id}`,
  keyOf: ({ id }) => id,
  judge({ id }) {
    parseOwnerId(id);
    return undefined;
  },
});

export const ownerChecks: readonly TableCheck[] = [owner];
