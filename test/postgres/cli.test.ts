import { expect, test } from "vitest";
import { openHoldfast } from "../../src/index.ts";
import { holdfastCli } from "../cli/host.ts";
import { describeRuns } from "../cli/runs.suite.ts";
import { Place } from "./place.ts";

describeRuns("Postgres", async () => {
  const place = await Place.prepared();
  const { schema } = place;
  return {
    args: ["--db", place.url, "--schema", schema],
    open: () =>
      openHoldfast(place.url, {
        postgres: { schema },
        onEvent: () => undefined,
      }),
    dispose: () => place.dispose(),
  };
});

test("a schema without tables is refused by every kind of command, and stays as it is", async () => {
  const place = new Place();
  const args = ["--db", place.url, "--schema", place.schema];
  for (const command of [["list"], ["cancel", "a"]]) {
    const ran = await holdfastCli([...command, ...args]);
    expect(ran.code).toBe(5);
    expect(ran.stderr).toMatch(/^SCHEMA_OUTDATED: The database has no holdfast tables/);
  }
  const found = await place.shell()`
    SELECT count(*)::int AS n FROM pg_namespace WHERE nspname = ${place.schema}`;
  expect(found[0]?.["n"]).toBe(0);
  await place.dispose();
});

test("a backup is left to the tools of Postgres", async () => {
  const place = await Place.prepared();
  const args = ["--db", place.url, "--schema", place.schema];
  const ran = await holdfastCli(["backup", "x.db", ...args]);
  expect(ran.code).toBe(2);
  expect(ran.stderr).toContain("pg_dump");
  await place.dispose();
});
