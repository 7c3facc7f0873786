import { describe, expect, test } from "vitest";
import { row, sql } from "../../src/kernel.ts";
import { createHead } from "../fixtures/append-entry.ts";
import { createHeads } from "./log.ts";
import { until, withNewPlace } from "./place.ts";

describe("a newer version that migrates while the database is open", () => {
  test.each([{ prepare: true }, { prepare: false }])(
    "stops writes, and reads go on (%o)",
    (options) =>
      withNewPlace(async (place) => {
        const database = await place.open({ ...options, pollInterval: 10 });
        await createHeads(database, 0);
        await place.shell()`
          INSERT INTO holdfast_migration (number, name, checksum, schema_hash, applied_at)
          VALUES (999, 'of the future', '', '', 0)`;
        let tries = 0;
        let refusal: unknown;
        await until(async () => {
          tries += 1;
          await database
            .write(createHead, { id: `h${tries}` })
            .catch((error: unknown) => (refusal = error));
          return refusal !== undefined;
        });
        expect(refusal).toMatchObject({
          code: "SCHEMA_NEWER",
          details: { found: 999 },
        });
        expect(
          await database.read("heads", () => row(sql`SELECT count(*) AS n FROM app_log_head`)),
        ).toEqual({ n: tries - 1 });
      }),
  );
});
