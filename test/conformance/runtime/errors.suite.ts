import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../../src/model/errors.ts";
import type { ExecutionId } from "../../../src/model/ids/execution-id.ts";
import { isRunFailedError, type RunFailedError } from "../../../src/model/run-failed-error.ts";
import { activity, workflow, type Workflow } from "../../../src/runtime/definition/definitions.ts";
import { isToldByResult } from "../../../src/runtime/runtime-event.ts";
import { NonRetryableError } from "../../../src/runtime/failures.ts";
import { integer, strict } from "../../../src/sql/dialect.ts";
import { run as runStatement } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { hostileThrows } from "../hostile-throws.ts";
import { onRuntime } from "./fixture.ts";

class CardDeclined extends Error {
  override readonly name = "CardDeclined";
  readonly data = { card: "visa", tries: [1, 2] };
  readonly socket = { secret: "s" };
}

const once = { retry: { maxRetries: 0 } };
const twice = { retry: { maxRetries: 1, backoff: 1 } };

const childOfA = "a.o:1_1" as ExecutionId;

/** What code can tell of an error, but for its stack. */
function seen(error: unknown): object {
  const { name, message, code, data, details, cause } = error as Error & {
    code?: unknown;
    data?: unknown;
    details?: unknown;
  };
  return {
    name,
    message,
    code,
    data,
    details,
    cause: cause === undefined ? undefined : seen(cause),
    isRunFailed: isRunFailedError(error),
  };
}

export function runtimeErrorsSuite(backend: Backend): void {
  describe("errors", () => {
    test(
      "of a run tell its id, function, step, attempt, causes and the line of the user's code",
      onRuntime(backend, async ({ holdfast }) => {
        const pay = workflow("pay", async (ctx) => {
          try {
            await ctx.step("charge", twice, () => {
              throw new CardDeclined("no money");
            });
          } catch (cause) {
            throw new TypeError("billing failed", { cause });
          }
        });
        await holdfast.work([pay]);
        const run = await holdfast.start(pay, undefined, { id: "order-42" });
        const error = (await rejection(run.result())) as RunFailedError;
        expect(error).toMatchObject({
          name: "RunFailedError",
          runId: "order-42",
          function: "pay",
          kind: "failed",
          step: "charge",
          attempt: 2,
        });
        expect(error.message).toMatch(
          /^Run order-42 of pay failed in step "charge" \(attempt 2\): TypeError: billing failed; caused by CardDeclined: no money \(at .*errors\.suite\.ts:\d+:\d+\)$/,
        );
        const { cause } = error;
        expect(cause).toBeInstanceOf(TypeError);
        expect((cause as Error).stack).toContain("errors.suite.ts");
        expect((cause as Error).cause).toMatchObject({
          name: "CardDeclined",
          message: "no money",
          data: { card: "visa", tries: [1, 2] },
        });
        expect((cause as Error).cause).not.toHaveProperty("socket");
      }),
    );

    test(
      "of a constraint that is looked at when a transaction commits reach its code after one run",
      onRuntime(backend, async ({ holdfast, database }) => {
        await database.write("tables", function* () {
          yield* runStatement(sql`CREATE TABLE app_parent (id ${integer} PRIMARY KEY) ${strict}`);
          yield* runStatement(
            sql`CREATE TABLE app_child (parent ${integer} REFERENCES app_parent (id) DEFERRABLE INITIALLY DEFERRED) ${strict}`,
          );
        });
        let bodies = 0;
        const orphan = workflow("orphan", (ctx) =>
          ctx.transaction("insert", function* () {
            bodies += 1;
            yield* runStatement(sql`INSERT INTO app_child (parent) VALUES (${7})`);
          }),
        );
        await holdfast.work([orphan]);
        const error = await rejection((await holdfast.start(orphan)).result({ timeout: "20s" }));
        expect(isRunFailedError(error)).toBe(true);
        expect(error.cause).toMatchObject({ code: "CONSTRAINT_VIOLATED" });
        expect(bodies).toBeLessThanOrEqual(2);
      }),
    );

    test.each(hostileThrows)(
      "fail the run that throws %s, wherever it does, and disturb no other",
      (_, made) =>
        onRuntime(backend, async ({ holdfast, said }) => {
          const thrown = made();
          const raise = (): never => {
            throw thrown;
          };
          const body = workflow("body", async () => raise());
          const functions = [
            body,
            workflow("child", (ctx) => ctx.call(body)),
            workflow("step", (ctx) => ctx.step("s", once, raise)),
            workflow("later", (ctx) => ctx.step("s", once, async () => raise())),
            workflow("transaction", (ctx) =>
              ctx.transaction("t", function* () {
                raise();
              }),
            ),
            activity("activity", once, async () => raise()),
          ];
          const good = workflow("good", async (ctx) => {
            await ctx.step("s", () => 1);
            return ctx.transaction("t", function* () {
              return "good";
            });
          });
          await holdfast.work([...functions, good]);
          const failing = await Promise.all(functions.map((each) => holdfast.start(each)));
          const goods = await holdfast.startMany(good, [{}, {}, {}]);
          for (const run of failing) {
            const error = await rejection(run.result());
            expect(error).toMatchObject({
              name: "RunFailedError",
              kind: "failed",
            });
          }
          for (const run of goods) expect(await run.result()).toBe("good");
          // Each failure is reported, and nothing else is.
          const errors = said.filter(({ level }) => level === "error");
          expect(errors.filter((event) => !isToldByResult(event))).toEqual([]);
        })(),
    );

    for (const hotRunsMax of [1_000, 0])
      test(
        `of steps, transactions and children are the same to the code, ${hotRunsMax === 0 ? "replayed" : "live"}`,
        onRuntime(backend, async ({ holdfast }) => {
          const inner = workflow("inner", async (ctx) =>
            ctx.step("deep", once, () => {
              throw new CardDeclined("deep down");
            }),
          );
          const failing = activity("failing", twice, async () => {
            throw Object.assign(new RangeError("too far"), { code: "FAR" });
          });
          const outer = workflow("outer", async (ctx) => {
            const said: object[] = [];
            const take = (thrown: unknown): void => {
              said.push(seen(thrown));
            };
            await ctx.step("odd", once, () => Promise.reject({ status: 404 })).catch(take);
            await ctx.step("bad value", () => ({ at: { fn: () => 1 } })).catch(take);
            await ctx
              .transaction("book", function* () {
                throw new CardDeclined("not booked");
              })
              .catch(take);
            await ctx.call(inner).catch(take);
            await ctx.call(failing).catch(take);
            const set = ctx.joinSet();
            set.spawn(failing);
            await set.next().catch(take);
            await ctx.sleep(1);
            return said;
          });
          await holdfast.work([outer, inner, failing], { hotRunsMax });
          const run = await holdfast.start(outer, undefined, { id: "o" });
          const said = await run.result();
          const declined = (message: string) => ({
            name: "CardDeclined",
            message,
            data: { card: "visa", tries: [1, 2] },
            isRunFailed: false,
          });
          expect(said).toMatchObject([
            { name: "NonError", data: { status: 404 } },
            {
              name: "HoldfastError",
              code: "NOT_SERIALIZABLE",
              details: { path: "$.at.fn" },
            },
            declined("not booked"),
            {
              name: "RunFailedError",
              message: expect.stringMatching(
                /^Run \S+ of inner failed in step "deep" \(attempt 1\): CardDeclined: deep down/,
              ) as string,
              cause: declined("deep down"),
              isRunFailed: true,
            },
            {
              message: expect.stringMatching(
                /^Run \S+ of failing failed \(attempt 2\): RangeError: too far/,
              ) as string,
              cause: { name: "RangeError", code: "FAR" },
              isRunFailed: true,
            },
            { cause: { name: "RangeError", code: "FAR" }, isRunFailed: true },
          ]);
        }),
      );

    test(
      "of a child that its parent lets pass stay typed, and name the line of both",
      onRuntime(backend, async ({ holdfast }) => {
        const leaf = activity("leaf", async () => {
          throw new NonRetryableError("no leaf", {
            cause: new Error("frost"),
          });
        });
        const branch = workflow("branch", async (ctx) => ctx.call(leaf));
        const tree = workflow("tree", async (ctx) => ctx.call(branch));
        await holdfast.work([leaf, branch, tree]);
        const run = await holdfast.start(tree, undefined, { id: "t" });
        const error = (await rejection(run.result())) as RunFailedError;
        expect(error.message).toMatch(
          /^Run t of tree failed: NonRetryableError: no leaf; caused by Error: frost \(at \S+errors\.suite\.ts\S+, in run t\S+ of leaf, attempt 1\)$/,
        );
        const ofBranch = error.cause as RunFailedError;
        expect(isRunFailedError(ofBranch)).toBe(true);
        expect(ofBranch).toMatchObject({ function: "branch", kind: "failed" });
        expect(ofBranch.stack).toContain("errors.suite.ts");
        const ofLeaf = ofBranch.cause as RunFailedError;
        expect(isRunFailedError(ofLeaf)).toBe(true);
        expect(ofLeaf).toMatchObject({ function: "leaf", attempt: 1 });
        expect(ofLeaf.stack).toContain("errors.suite.ts");
        expect((ofLeaf.cause as Error).cause).toMatchObject({
          message: "frost",
        });
      }),
    );

    test.each([
      { levels: 5, place: String.raw`, in run \S+ of level, step "dig", attempt 1` },
      // A failure keeps eight errors: which run threw the last is not known of longer chains.
      { levels: 12, place: "" },
    ])(
      "of a child $levels levels down are told once, with all causes behind",
      ({ levels, place }) =>
        onRuntime(backend, async ({ holdfast }) => {
          const level: Workflow<number, string> = workflow("level", async (ctx, below: number) =>
            below > 1
              ? ctx.call(level, below - 1)
              : ctx.step("dig", once, (): string => {
                  throw new CardDeclined("rock");
                }),
          );
          await holdfast.work([level]);
          const run = await holdfast.start(level, levels, { id: "top" });
          const error = await rejection(run.result());
          expect(error.message).toMatch(
            new RegExp(
              String.raw`^Run top of level failed: CardDeclined: rock \(at \S+errors\.suite\.ts:\d+:\d+${place}\)$`,
            ),
          );
          const causes: Error[] = [];
          for (let each = error.cause; each instanceof Error; each = each.cause) causes.push(each);
          const runs = causes.slice(0, -1) as RunFailedError[];
          expect(runs.map(({ runId }) => runId.split(".").length)).toEqual(
            Array.from({ length: Math.min(levels - 1, 7) }, (_, depth) => depth + 2),
          );
          expect(causes.at(-1)).toMatchObject({ name: "CardDeclined", message: "rock" });
        })(),
    );

    test(
      "of a child that its parent wraps, or that was cancelled, are told once",
      onRuntime(backend, async ({ holdfast }) => {
        const leaf = activity("leaf", once, async () => {
          throw new CardDeclined("no money");
        });
        const wrapping = workflow("wrapping", async (ctx) => {
          try {
            await ctx.call(leaf);
          } catch (cause) {
            throw new TypeError("billing failed", { cause });
          }
        });
        const waiting = workflow("waiting", (ctx) => ctx.sleep("1 hour"));
        const above = workflow("above", (ctx) => ctx.call(waiting));
        await holdfast.work([leaf, wrapping, waiting, above]);
        const wrapped = await holdfast.start(wrapping, undefined, { id: "w" });
        expect((await rejection(wrapped.result())).message).toMatch(
          /^Run w of wrapping failed: TypeError: billing failed; caused by CardDeclined: no money \(at \S+errors\.suite\.ts:\d+:\d+, in run w\S+ of leaf, attempt 1\)$/,
        );
        const run = await holdfast.start(above, undefined, { id: "a" });
        await expect.poll(() => run.status()).toBe("blocked");
        await expect
          .poll(() => holdfast.executions.get(childOfA).then(({ state }) => state.pending.kind))
          .toBe("blocked");
        await holdfast.executions.cancel(childOfA, { reason: "too late" });
        expect((await rejection(run.result())).message).toBe(
          `Run a of above failed: Run ${childOfA} of waiting was cancelled: too late.`,
        );
      }),
    );

    test(
      "too large for the limits of values are cut, and still end step and run",
      onRuntime(backend, async ({ another }) => {
        const small = await another({ valueLimits: { charactersMax: 400 } });
        const long = workflow("long", async (ctx) => {
          const first = await ctx
            .step("long", once, () => {
              throw Object.assign(new RangeError("x".repeat(5_000)), {
                data: "y".repeat(5_000),
              });
            })
            .catch((error: unknown) => error as RangeError);
          throw first;
        });
        await small.work([long]);
        const error = await rejection((await small.start(long)).result());
        expect(error).toMatchObject({ kind: "failed", step: "long" });
        expect(error.cause).toBeInstanceOf(RangeError);
        expect((error.cause as Error).message).toMatch(/^x{50,}…$/);
      }),
    );

    for (const code of [
      "EXECUTION_FINISHED",
      "VERSION_CONFLICT",
      "LOCK_LOST",
      "REVISION_CONFLICT",
    ] as const)
      test(
        `thrown by the body of a transaction are its failure, also with the code ${code}, which its log may have too`,
        onRuntime(backend, async ({ holdfast }) => {
          let bodies = 0;
          const booking = workflow("booking", async (ctx) =>
            ctx
              .transaction("book", function* () {
                bodies += 1;
                throw new HoldfastError(code, "of another run");
              })
              .catch((error: unknown) => (error as HoldfastError).code),
          );
          await holdfast.work([booking]);
          expect(await (await holdfast.start(booking)).result()).toBe(code);
          expect(bodies).toBe(1);
        }),
      );
  });
}
