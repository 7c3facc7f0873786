import { expect, onTestFinished } from "vitest";
import { rows } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Database } from "../../src/stores/database.ts";
import { Child } from "./child.ts";

/** Several processes open a new database and set up the same tables at once: all succeed, and each migration is applied once. */
export async function expectSetUpOnce(
  place: string,
  opened: () => Promise<Database>,
): Promise<void> {
  const children = Array.from({ length: 4 }, () => {
    const child = new Child("set-up-runner.ts", [place]);
    onTestFinished(() => child.kill());
    return child;
  });
  for (const child of children) await child.reported(1);
  for (const child of children) child.tell("go");
  for (const child of children) {
    expect(await child.ended).toBe(0);
    expect(child.errors).toBe("");
  }
  const applied = children.map(({ lines }) => lines[1]);
  expect(applied.toSorted()).toEqual([
    "",
    "",
    "",
    "0001_goods 0002_hat 0003_more_hats",
  ]);
  const database = await opened();
  expect(
    await database.read("goods", () => rows(sql`SELECT id, n FROM app_goods`)),
  ).toEqual([{ id: "hat", n: 1 }]);
}
