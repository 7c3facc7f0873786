import { expect } from "vitest";
import type { PayloadCodec } from "../../src/model/values/payload-codec.ts";
import { maintenance } from "../../src/blobs.ts";
import type { Database } from "../../src/sql/database.ts";

/** Whatever was done to a database, nothing in it is damaged. */
export async function expectSound(database: Database, payload?: PayloadCodec): Promise<void> {
  const care = maintenance(database, payload === undefined ? {} : { payload });
  const { damaged, isComplete } = await care.check();
  expect({ damaged, isComplete }).toEqual({ damaged: [], isComplete: true });
}
