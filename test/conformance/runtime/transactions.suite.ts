import { describe, expect, test } from "vitest";
import { HoldfastError, isHoldfastError } from "../../../src/model/errors.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { activity, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Database, WriteOptions } from "../../../src/sql/database.ts";
import { rollbackWith, row, run as execute, type Tx } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { overlaid } from "../../../src/testing/overlaid.ts";
import { rejection, type Backend } from "../backend.ts";
import { T0 } from "../execution/fixture.ts";
import { createNoteTable } from "../notes.ts";
import { expectSound } from "../sound.ts";
import { onRuntime } from "./fixture.ts";
import { answerLost } from "./meddling.ts";
import { kindsOf, Tally, until } from "./waiting.ts";

export function runtimeTransactionsSuite(backend: Backend): void {
  describe("a transaction that answers its own run", () => {
    ownRunTests(backend);
  });
  describe("a transaction that the database interrupts", () => {
    interruptedTests(backend);
  });
}

const interrupted = (): HoldfastError =>
  new HoldfastError("STATEMENT_INTERRUPTED", "The server cancelled the statement.");

/** The database, which has an attempt of a transaction go through something; it may run a body more than once for one. */
function meddlingWithAttempts(
  database: Database,
  through: (
    body: () => Tx<unknown>,
    write: (body: () => Tx<unknown>) => Promise<unknown>,
  ) => Promise<unknown>,
): Database {
  const write = (...call: unknown[]): Promise<unknown> => {
    const [name, body, options] = call as [unknown, () => Tx<unknown>, WriteOptions];
    return name === "transaction book"
      ? through(body, (given) => database.write(name, given, options))
      : database.write(...(call as Parameters<Database["write"]>));
  };
  return overlaid(database, { write } as Partial<Database>);
}

/** Fails the statement on the table of notes; asked once for each attempt. */
function interrupting(database: Database, isInterrupted: () => boolean): Database {
  return meddlingWithAttempts(database, (body, write) => {
    let isSo: boolean | undefined;
    return write(function* () {
      const inner = body();
      let step = inner.next();
      while (step.done !== true) {
        const isOnNotes = step.value.statement?.template.sqlite.includes("app_note") === true;
        if (isOnNotes) isSo ??= isInterrupted();
        step =
          isOnNotes && isSo === true ? inner.throw(interrupted()) : inner.next(yield step.value);
      }
      return step.value;
    });
  });
}

/** Rolls the commit back, and has nobody hear of that; asked once for each attempt. */
function losingCommits(database: Database, isLost: () => boolean): Database {
  return meddlingWithAttempts(database, async (body, write) => {
    let isSo: boolean | undefined;
    const answer = await write(function* () {
      const value = yield* body();
      isSo ??= isLost();
      return isSo ? yield* rollbackWith(value) : value;
    });
    if (isSo === true) throw answerLost();
    return answer;
  });
}

const booked = (database: Database): Promise<unknown> =>
  database.read("notes", () => row<{ n: number }>(sql`SELECT count(*) AS n FROM app_note`));

function interruptedTests(backend: Backend): void {
  const book = workflow("booking", (ctx) =>
    ctx.transaction("book", function* () {
      yield* execute(sql`INSERT INTO app_note (id, half, body) VALUES ('n', 1, 'x')`);
      return "booked";
    }),
  );

  for (const [interruption, meddling, code] of [
    ["while it runs", interrupting, "STATEMENT_INTERRUPTED"],
    ["as it commits", losingCommits, "BATCH_ROLLED_BACK"],
  ] as const) {
    test(
      `${interruption} is attempted again and done once`,
      onRuntime(backend, async ({ holdfast, database, another }) => {
        await database.write("table", createNoteTable);
        const tally = new Tally();
        const meddled = await another(
          {},
          meddling(database, () => tally.count("attempt") <= 2),
        );
        await meddled.work([book]);
        const started = await meddled.start(book);
        expect(await started.result()).toBe("booked");
        expect(tally.of("attempt")).toBe(3);
        expect(await kindsOf(holdfast, started.id)).toEqual([
          "created",
          "locked",
          "stepAttemptFailed",
          "stepAttemptFailed",
          "transactionFinished",
          "finished",
        ]);
        expect(await booked(database)).toEqual({ n: 1 });
        await expectSound(database);
      }),
    );

    for (const hotRunsMax of [100, 0])
      test(
        `${interruption}, again and again, fails its run after five retries, ${hotRunsMax === 0 ? "replayed" : "live"}`,
        onRuntime(backend, async ({ database, another }) => {
          await database.write("table", createNoteTable);
          const clock = manualClock(T0);
          const tally = new Tally();
          const meddled = await another(
            { clock },
            meddling(database, () => tally.count("attempt") > 0),
          );
          await meddled.work([book], { hotRunsMax, lease: "1 hour" });
          const started = await meddled.start(book);
          await until(async () => {
            clock.advance(500);
            return (await started.status()) === "failed";
          });
          const error = await rejection(started.result());
          expect(error.cause).toMatchObject({ code });
          const kinds = await kindsOf(meddled, started.id);
          expect(kinds.filter((kind) => kind === "stepAttemptFailed")).toHaveLength(5);
          expect(tally.of("attempt")).toBe(6);
          expect(await booked(database)).toEqual({ n: 0 });
        }),
      );
  }

  for (const isolation of ["serializable", "readCommitted"] as const)
    test(
      `[RN2] is attempted again as often as its retry says, ${isolation}`,
      onRuntime(backend, async ({ database, another }) => {
        await database.write("table", createNoteTable);
        const tally = new Tally();
        const meddled = await another(
          {},
          interrupting(database, () => tally.count("attempt") > 0),
        );
        const patient = workflow("patient", (ctx, maxRetries: number) =>
          ctx.transaction("book", { isolation, retry: { maxRetries, backoff: 1 } }, function* () {
            yield* execute(sql`INSERT INTO app_note (id, half, body) VALUES ('n', 1, 'x')`);
          }),
        );
        await meddled.work([patient]);
        for (const [maxRetries, attempts] of [
          [0, 1],
          [2, 4],
        ] as const) {
          const error = await rejection((await meddled.start(patient, maxRetries)).result());
          expect(error.cause).toMatchObject({ code: "STATEMENT_INTERRUPTED" });
          expect(tally.of("attempt")).toBe(attempts);
        }
        expect(await booked(database)).toEqual({ n: 0 });
      }),
    );

  test(
    "and that waits for its next attempt fails when its run is cancelled",
    onRuntime(backend, async ({ database, another }) => {
      await database.write("table", createNoteTable);
      const tally = new Tally();
      const meddled = await another(
        { clock: manualClock(T0) },
        interrupting(database, () => tally.count("attempt") > 0),
      );
      await meddled.work([book]);
      const started = await meddled.start(book);
      await until(async () => (await kindsOf(meddled, started.id)).includes("stepAttemptFailed"));
      await started.cancel();
      await expect(started.result()).rejects.toMatchObject({ kind: "cancelled" });
      expect(tally.of("attempt")).toBe(1);
      expect(await kindsOf(meddled, started.id)).toContain("transactionFinished");
    }),
  );

  test(
    "is not attempted again when its body answers with an error of its own",
    onRuntime(backend, async ({ database, another }) => {
      await database.write("table", createNoteTable);
      const tally = new Tally();
      const meddled = await another(
        {},
        interrupting(database, () => tally.count("attempt") > 0),
      );
      const own = workflow("own", (ctx) =>
        ctx.transaction("book", function* () {
          try {
            yield* execute(sql`INSERT INTO app_note (id, half, body) VALUES ('n', 1, 'x')`);
          } catch {
            throw new RangeError("no seat");
          }
        }),
      );
      await meddled.work([own]);
      const error = await rejection((await meddled.start(own)).result());
      expect(error.cause).toMatchObject({ name: "RangeError" });
      expect(tally.of("attempt")).toBe(1);
    }),
  );
}

function ownRunTests(backend: Backend): void {
  for (const hotRunsMax of [undefined, 0])
    test(
      `[R12] keeps the answer, ${hotRunsMax === 0 ? "replayed" : "live"}`,
      onRuntime(backend, async ({ holdfast, database }) => {
        const { executions } = holdfast;
        const answering = workflow("answering", async (ctx) => {
          const external = ctx.external<number>();
          await ctx.sleep(1);
          const id = external.token.split("~")[0] ?? "";
          const end = executions.finish.prepare(id, 1, { kind: "completed", value: 5 });
          await ctx.transaction("t", function* () {
            yield* end();
          });
          return Promise.race([external.result(), ctx.sleep("1 hour")]);
        });
        await holdfast.work([answering], hotRunsMax === undefined ? {} : { hotRunsMax });
        expect(await (await holdfast.start(answering)).result()).toBe(5);
        await expectSound(database);
      }),
    );

  test(
    "[R12] and that ends a child which is being run keeps the child's answer",
    onRuntime(backend, async ({ holdfast, database }) => {
      const { executions } = holdfast;
      const slow = activity(
        "slow",
        ({ abortSignal }) =>
          new Promise<string>((_, reject) => {
            abortSignal.addEventListener("abort", () => reject(new Error("stopped")));
          }),
      );
      const parent = workflow("parent", async (ctx) => {
        const child = ctx.spawn(slow);
        await ctx.sleep(1);
        await ctx.step("begun", () =>
          until(async () => (await kindsOf(holdfast, child.id)).includes("locked")),
        );
        const end = executions.finish.prepare(child.id, 2, { kind: "completed", value: "ended" });
        await ctx.transaction("t", function* () {
          yield* end();
        });
        return child.result();
      });
      await holdfast.work([parent, slow]);
      expect(await (await holdfast.start(parent)).result()).toBe("ended");
      await expectSound(database);
    }),
  );

  test(
    "[R12] but one that ends its own run fails, writes nothing, and the run goes on",
    onRuntime(backend, async ({ holdfast, database }) => {
      const { executions } = holdfast;
      await database.write("table", createNoteTable);
      const ending = workflow("ending", async (ctx) => {
        const end = executions.finish.prepare(ctx.id, 2, { kind: "completed", value: "inside" });
        const code = await ctx
          .transaction("end", function* () {
            yield* execute(sql`INSERT INTO app_note (id, half, body) VALUES ('n', 1, 'x')`);
            yield* end();
          })
          .catch((error: unknown) => isHoldfastError(error) && error.code);
        await ctx.step("goes on", () => 1);
        return code;
      });
      await holdfast.work([ending]);
      const started = await holdfast.start(ending);
      expect(await started.result()).toBe("EXECUTION_CHANGED_INSIDE");
      expect(await kindsOf(holdfast, started.id)).toEqual([
        "created",
        "locked",
        "transactionFinished",
        "stepFinished",
        "finished",
      ]);
      expect(await booked(database)).toEqual({ n: 0 });
    }),
  );
}
