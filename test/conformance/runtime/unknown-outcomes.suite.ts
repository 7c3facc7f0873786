import { describe, expect, test } from "vitest";
import { HoldfastError, type ErrorCode } from "../../../src/model/errors.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import { row, run as execute } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { answerLost, Meddling } from "./meddling.ts";
import { Tally } from "./waiting.ts";

/** Writes whose answer is lost: the connection broke, or the flush failed. */
export function runtimeUnknownOutcomesSuite(backend: Backend): void {
  describe("an append whose outcome is unknown", () => {
    for (const isDone of [true, false])
      test(
        `[RT16] and ${isDone ? "was" : "was not"} made is repeated, and what it holds is delivered once`,
        onRuntime(backend, async ({ database, another }) => {
          const meddling = new Meddling(database);
          const holdfast = await another({}, meddling.database);
          const go = signal<string>("go");
          const tally = new Tally();
          const child = activity("child", async () => tally.count("child"));
          const several = workflow("several", async (ctx) => {
            const seen: unknown[] = [];
            const see = (value: unknown) => seen.push(value);
            await Promise.all([
              ctx.step("a", () => tally.count("a")).then(see),
              ctx.step("b", () => tally.count("b") + 1).then(see),
            ]);
            see(await ctx.call(child));
            await ctx.sleep(1);
            see(await ctx.receive(go));
            const failed = await rejection(
              ctx.step("fails", { retry: { maxRetries: 0 } }, () => {
                throw new Error(`${tally.count("fails")}`);
              }),
            );
            see(failed.message);
            return seen;
          });
          await holdfast.work([several, child]);
          meddling.on("appendEvents", losingEverySecond(isDone));
          const run = await holdfast.start(several);
          await run.signal(go, "went");
          expect(await run.result()).toEqual([1, 2, 1, "went", "1"]);
          expect(tally.all).toEqual({ a: 1, b: 1, child: 1, fails: 1 });
          const { items } = await run.events({ kinds: ["stepFinished"] });
          expect(items.map(({ event }) => (event as { name: string }).name)).toEqual([
            "a",
            "b",
            "fails",
          ]);
        }),
      );

    test(
      "[RT15] and runs a body on the user's tables is repeated without running it again",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        await database.setUp("test", [
          {
            name: "0001_account",
            *up() {
              yield* execute(
                sql`CREATE TABLE account (id TEXT PRIMARY KEY, cents INTEGER NOT NULL)`,
              );
              yield* execute(sql`INSERT INTO account VALUES ('ada', 0)`);
            },
          },
        ]);
        const pay = workflow("pay", async (ctx) =>
          ctx.transaction("pay", function* () {
            yield* execute(sql`UPDATE account SET cents = cents + 500 WHERE id = 'ada'`);
            const found = yield* row<{ cents: number }>(
              sql`SELECT cents FROM account WHERE id = 'ada'`,
            );
            return found?.cents;
          }),
        );
        await holdfast.work([pay]);
        meddling.loseNext("transaction pay", 2);
        expect(await (await holdfast.start(pay)).result()).toBe(500);
        expect(
          await database.read("balance", () =>
            row<{ cents: number }>(sql`SELECT cents FROM account`),
          ),
        ).toEqual({ cents: 500 });
      }),
    );

    test(
      "[RT16] a start whose answer was lost is repeated under its id, and the run runs once",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const tally = new Tally();
        const once = workflow("once", async (ctx) => ctx.step("once", () => tally.count("once")));
        const looked = meddling.firstLook();
        await holdfast.work([once]);
        await looked;
        meddling.loseNext("createAndLock", 1);
        const start = () => holdfast.start(once, undefined, { id: "r" });
        expect(await rejection(start())).toMatchObject({
          code: "OUTCOME_UNKNOWN",
          retryable: true,
        });
        expect(await (await start()).result()).toBe(1);
        expect(tally.of("once")).toBe(1);
      }),
    );
  });

  describe("an append that the server does not take for a while", () => {
    for (const code of ["READ_ONLY", "STATEMENT_INTERRUPTED"] as const)
      test(
        `is repeated, and no step is done again: ${code}`,
        onRuntime(backend, async ({ database, another, said }) => {
          const meddling = new Meddling(database);
          const holdfast = await another({}, meddling.database);
          const tally = new Tally();
          const child = activity("child", async () => tally.count("child"));
          const pay = workflow("pay", async (ctx) => {
            await ctx.step("pay", () => tally.count("pay"));
            await ctx.transaction("book", function* () {
              return tally.count("book");
            });
            return ctx.call(child);
          });
          await holdfast.work([pay, child]);
          meddling.on("appendEvents", refusingEverySecond(code));
          meddling.on("transaction book", refusingEverySecond(code));
          expect(await (await holdfast.start(pay)).result()).toBe(1);
          expect(tally.all).toEqual({ pay: 1, book: 1, child: 1 });
          expect(said.filter(({ level }) => level === "error")).toEqual([]);
        }),
      );
  });
}

/** Each call is refused once and then done, by turns. */
function refusingEverySecond(code: ErrorCode) {
  let isRefused = false;
  return async (go: () => Promise<unknown>): Promise<unknown> => {
    isRefused = !isRefused;
    if (!isRefused) return go();
    throw new HoldfastError(code, "Not now.");
  };
}

/** Each call is lost once and then answered, by turns. */
function losingEverySecond(isDone: boolean) {
  let isLost = false;
  return async (go: () => Promise<unknown>): Promise<unknown> => {
    isLost = !isLost;
    if (!isLost) return go();
    if (isDone) await go();
    throw answerLost();
  };
}
