import { Fate } from "../../../sql/fate.ts";
import {
  appliedSchemaNumber,
  schemaNewer,
  schemaNumber,
} from "../../../sql/migrations.ts";
import type { Connection } from "./connection.ts";
import { drive } from "./drive.ts";

/**
 * Another process may migrate the file while we have it open. `data_version`
 * moves with every foreign commit; only then is the schema looked at.
 */
export function schemaGuard(writer: Connection): () => void {
  let seen = writer.pragma("data_version");
  return () => {
    const version = writer.pragma("data_version");
    if (version === seen) return;
    const found = drive(
      appliedSchemaNumber(),
      writer,
      new Fate("open", undefined),
    );
    if (found > schemaNumber) throw schemaNewer(found, schemaNumber);
    seen = version;
  };
}
