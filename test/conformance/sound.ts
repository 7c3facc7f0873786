import { expect } from "vitest";
import type { PayloadCodec } from "../../src/model/values/payload-codec.ts";
import { maintenance } from "../../src/blobs.ts";
import { suspiciousExecutions } from "../../src/stores/execution/parts.ts";
import type { Database } from "../../src/sql/database.ts";

/** Whatever was done to a database, nothing in it is damaged. */
export async function expectSound(database: Database, payload?: PayloadCodec): Promise<void> {
  const care = maintenance(database, payload === undefined ? {} : { payload });
  const { damaged, isComplete } = await care.check();
  expect({ damaged, isComplete }).toEqual({ damaged: [], isComplete: true });
}

/** No row of a run contradicts its log as a check sees it, which knows of no renewal. */
export async function expectAgreement(database: Database, perSnapshot = 5_000): Promise<void> {
  const found: string[] = [];
  const walk = suspiciousExecutions(database, { rowsPerSlice: 500, perSnapshot });
  for await (const { suspicious } of walk)
    found.push(...suspicious.map(({ id, reason }) => `${id}: ${reason}`));
  expect(found).toEqual([]);
}
