import { expect, test } from "vitest";
import { isHoldfastError, workflow } from "../../src/index.ts";
import { NonRetryableError } from "../../src/runtime/failures.ts";
import { rollbackWith } from "../../src/sql/operation.ts";
import type { Tx } from "../../src/sql/operation.ts";
import type { TestHoldfast } from "../../src/testing.ts";
import { pageNames, writeRows } from "../conformance/pages/fixture.ts";
import { withoutWait } from "../conformance/pages/fuzz.suite.ts";
import { validCalls } from "../conformance/pages/valid-calls.ts";
import { opening } from "./kit.ts";

type Part = () => Tx<unknown>;

const open = opening();

/** A valid call of each method of each store that the kit gives, prepared. */
async function preparedParts(kit: TestHoldfast): Promise<ReadonlyMap<string, Part>> {
  const parts = new Map<string, Part>();
  const calls = validCalls(await writeRows(kit.database));
  for (const page of pageNames) {
    if (!(page in kit) || page === "schedules") continue;
    const methods = Object.entries(kit[page as keyof TestHoldfast] as object);
    for (const [name, method] of methods as [string, { prepare?: (...args: unknown[]) => Part }][])
      if (method.prepare !== undefined)
        parts.set(`${page}.${name}`, method.prepare(...withoutWait(calls[page][name]?.args ?? [])));
  }
  return parts;
}

/** A refusal of what was asked is an answer of the store; one of how it was asked is not. */
function isFlaw(error: unknown): boolean {
  return !isHoldfastError(error) || error.code === "OPERATION_INVALID";
}

test("a prepared part of every store runs in a write of the kit's database", async () => {
  const kit = await open([]);
  const parts = await preparedParts(kit);
  expect(parts.size).toBeGreaterThan(100);
  const flaws: string[] = [];
  for (const [name, part] of parts)
    await kit.database
      .write(
        name,
        function* () {
          yield* part();
          return yield* rollbackWith(undefined);
        },
        { isolation: "readCommitted" },
      )
      .catch((error: unknown) => {
        if (isFlaw(error)) flaws.push(`${name}: ${String(error)}`);
      });
  expect(flaws).toEqual([]);
});

test("a prepared part of every store runs in a transaction of a run", async () => {
  const parts = new Map<string, Part>();
  const flaws: string[] = [];
  const one = workflow("one", async (ctx, name: string) =>
    ctx.transaction(name, function* () {
      try {
        yield* parts.get(name)?.() ?? [];
      } catch (error) {
        if (isFlaw(error)) flaws.push(`${name}: ${String(error)}`);
      }
      throw new NonRetryableError("undone");
    }),
  );
  const kit = await open([one]);
  for (const [name, part] of await preparedParts(kit)) parts.set(name, part);
  for (const name of parts.keys()) {
    const failure = await kit.run(one, name).catch((error: unknown) => (error as Error).cause);
    const { code } = failure as { code?: string };
    // A part that decides by rows it locks is refused in a body that is serializable.
    if (code !== undefined && code !== "ISOLATION_MISMATCH") flaws.push(`${name}: ${code}`);
  }
  expect(flaws).toEqual([]);
});

test("what a prepared part writes is kept with the write and with the run that it is a part of", async () => {
  const items = [{ kind: "input", payload: 1 }];
  const booking = workflow("booking", async (ctx) => {
    const part = kit.blobs.put.prepare(new TextEncoder().encode("in a run"));
    return (await ctx.transaction("book", part)).hash;
  });
  const kit: TestHoldfast = await open([booking]);
  await kit.sessions.create("chat");
  const enqueue = kit.queue.enqueue.prepare("chat", { items });
  await kit.database.write("ask", enqueue, { isolation: "readCommitted" });
  expect((await kit.queue.list("chat")).items).toHaveLength(1);
  const hash = await kit.run(booking);
  expect(await kit.blobs.get(hash)).toMatchObject({ size: 8 });
  await kit.crash();
  await kit.database.write("ask", kit.queue.enqueue.prepare("chat", { items }), {
    isolation: "readCommitted",
  });
  expect((await kit.queue.list("chat")).items).toHaveLength(2);
});

test("a part that a store of another kit has prepared is refused", async () => {
  const kit = await open([]);
  const other = await open([]);
  const part = other.executions.list.prepare();
  await expect(kit.database.write("list", part)).rejects.toMatchObject({
    code: "OPERATION_INVALID",
  });
});
