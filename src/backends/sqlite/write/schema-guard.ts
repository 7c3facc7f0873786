import { Fate } from "../../../sql/fate.ts";
import { refuseMoved } from "../../../sql/move-mark.ts";
import { appliedSchemaNumber, schemaNewer, schemaNumber } from "../../../sql/migrations.ts";
import type { Tx } from "../../../sql/operation.ts";
import type { SqlValue } from "../../../sql/statement.ts";
import type { Connection } from "./connection.ts";
import { drive } from "./drive.ts";

/**
 * Checks the schema of a file that another process may migrate, or move to Postgres, while it is
 * open here. `data_version` moves with every foreign commit. The schema is checked only then, and
 * before the first batch.
 * @returns that number, read inside the transaction that asks.
 */
export function schemaGuard(writer: Connection, isMover: boolean): () => SqlValue | undefined {
  let seen: SqlValue | undefined;
  return () => {
    const version = writer.dataVersion();
    if (version === seen) return version;
    drive(refuseForeign(isMover), writer, new Fate("open", undefined));
    seen = version;
    return version;
  };
}

function* refuseForeign(isMover: boolean): Tx<void> {
  const found = yield* appliedSchemaNumber();
  if (found > schemaNumber) throw schemaNewer(found, schemaNumber);
  if (!isMover) yield* refuseMoved();
}
