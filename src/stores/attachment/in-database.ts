import { blobBytesMaxDefault, blobSizeMax } from "../../model/blob.ts";
import { checkedCount, optionsOf } from "../../model/shape.ts";
import { lockRow } from "../../sql/dialect.ts";
import { row, run, plainOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Database } from "../../sql/database.ts";
import { attachmentFailed, hashed, type ByteStore } from "./byte-store.ts";

interface NewBytes {
  readonly name: string;
  readonly content: Uint8Array;
}

/** Stores bytes only for an active put: nothing would remove other bytes later. */
const putBytes = plainOperation("putAttachmentBytes", {
  key: (input) => input.name,
  *one({ name, content }: NewBytes): Tx<void> {
    const copy = yield* row<{ id: string; state: string }>(sql`
      SELECT id, state FROM holdfast_attachment_copy WHERE name = ${name} ${lockRow}`);
    if (copy?.state !== "writing")
      throw attachmentFailed(copy?.id ?? name, "a sweep abandoned the put in the meantime");
    yield* run(sql`
      INSERT INTO holdfast_attachment_bytes (name, content) VALUES (${name}, ${content})
      ON CONFLICT (name) DO NOTHING`);
  },
});

const getBytes = plainOperation("getAttachmentBytes", {
  key: (input) => input.name,
  *one({ name }: { readonly name: string }): Tx<Uint8Array | undefined> {
    const found = yield* row<{ readonly content: Uint8Array }>(sql`
      SELECT content FROM holdfast_attachment_bytes WHERE name = ${name}`);
    return found?.content;
  },
});

const removeBytes = plainOperation("removeAttachmentBytes", {
  key: (input) => input.name,
  *one({ name }: { readonly name: string }): Tx<void> {
    yield* run(sql`
      DELETE FROM holdfast_attachment_bytes WHERE name = ${name}`);
  },
});

/** Counts the attachments whose bytes are in another store, such as files. */
export function* attachmentsElsewhere(): Tx<number> {
  const found = yield* row<{ readonly count: number }>(sql`
    SELECT COUNT(*) AS count FROM holdfast_attachment_copy
    WHERE state = 'stored' AND store <> 'database'`);
  return found?.count ?? 0;
}

/**
 * Stores bytes in a table of the database, so that there is one file to back up. For attachments of
 * some megabytes.
 */
export function attachmentsInDatabase(
  database: Database,
  options?: {
    /** The size limit in bytes; larger attachments are refused. Defaults to 16 MiB. */
    readonly bytesMax?: number;
  },
): ByteStore {
  const { bytesMax = blobBytesMaxDefault } = optionsOf(options, ["bytesMax"]);
  return {
    kind: "database",
    isDurable: database.durability !== "memory",
    bytesMax: checkedCount("bytesMax", bytesMax, { min: 1, max: blobSizeMax }),
    async put(name, content) {
      await database.write(putBytes, { name, content });
      return hashed(database, content);
    },
    get: (name) => database.read(getBytes, { name }),
    remove: (name) => database.write(removeBytes, { name }),
  };
}
