import { Fate } from "../../../sql/fate.ts";
import {
  appliedSchemaNumber,
  schemaNewer,
  schemaNumber,
} from "../../../sql/migrations.ts";
import type { SqlValue } from "../../../sql/statement.ts";
import type { Connection } from "./connection.ts";
import { drive } from "./drive.ts";

/**
 * Another process may migrate the file while we have it open. `data_version`
 * moves with every foreign commit; only then is the schema looked at.
 * @returns that number, inside the transaction that asks.
 */
export function schemaGuard(writer: Connection): () => SqlValue | undefined {
  let seen = writer.dataVersion();
  return () => {
    const version = writer.dataVersion();
    if (version === seen) return version;
    const found = drive(
      appliedSchemaNumber(),
      writer,
      new Fate("open", undefined),
    );
    if (found > schemaNumber) throw schemaNewer(found, schemaNumber);
    seen = version;
    return version;
  };
}
