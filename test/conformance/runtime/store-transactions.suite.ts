import { describe, expect, test } from "vitest";
import type { HoldfastError } from "../../../src/model/errors.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { TransactionOptions } from "../../../src/runtime/definition/workflow-context.ts";
import type { Database } from "../../../src/sql/database.ts";
import { run as execute, rows, type Tx } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection, type Backend } from "../backend.ts";
import { T0 } from "../execution/fixture.ts";
import { claimant } from "../pages/valid-call.ts";
import { createNoteTable } from "../notes.ts";
import { expectSound } from "../sound.ts";
import { onRuntime } from "./fixture.ts";
import { Meddling } from "./meddling.ts";
import { gate, kindsOf, until } from "./waiting.ts";

const leaseMs = 3_000;
const go = signal<string>("go");
const forms = ["serializable", "readCommitted"] as const;

export function storeTransactionsSuite(backend: Backend): void {
  describe("a transaction of a run that uses the stores", () => {
    partsTests(backend);
  });
  describe("a transaction of a run, and the run", () => {
    fenceTests(backend);
    ownRunTests(backend);
  });
  describe("the options of a transaction", () => {
    optionTests(backend);
  });
}

const noted = (database: Database): Promise<readonly string[]> =>
  database.read("notes", function* (): Tx<readonly string[]> {
    const found = yield* rows<{ id: string }>(sql`SELECT id FROM app_note ORDER BY id`);
    return found.map(({ id }) => id);
  });

const note = (id: string): Tx<number> =>
  execute(sql`INSERT INTO app_note (id, half, body) VALUES (${id}, 1, 'x')`);

/** The code of what a call of ctx rejects with. */
async function codeOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
    return "done";
  } catch (error) {
    return (error as { readonly code?: unknown }).code ?? error;
  }
}

function partsTests(backend: Backend): void {
  test(
    "[RN2] takes leases, claims, signals, starts and reads, all of them once or none",
    onRuntime(backend, async ({ holdfast, database }) => {
      const { sessions, queue, leases, executions } = holdfast;
      await database.write("table", createNoteTable);
      await sessions.create("chat");
      await queue.enqueue("chat", { items: [{ kind: "input", payload: "hello" }] });
      const listener = workflow("listener", (ctx) => ctx.receive(go));
      await holdfast.work([listener], { lease: leaseMs });
      const heard = await holdfast.start(listener, undefined, { id: "heard" });
      const turn = workflow("turn", async (ctx, fails: boolean) =>
        ctx.transaction("turn", { isolation: "readCommitted" }, function* () {
          yield* note("turn");
          const lease = yield* leases.acquire.prepare("chat", claimant)();
          if (lease.kind !== "acquired") return lease.kind;
          const work = yield* queue.claimTurn.prepare(lease.lease)();
          const head = yield* sessions.head.prepare("chat")();
          const asked = yield* executions.get.prepare("heard")();
          yield* executions.signal.prepare("heard", "go", "from the turn")();
          if (fails) throw new RangeError("undone");
          return [work?.batches.length, head?.revision ?? null, asked.function];
        }),
      );
      await holdfast.work([turn]);
      const failed = await holdfast.start(turn, true);
      expect((await rejection(failed.result())).cause).toMatchObject({ name: "RangeError" });
      expect(await noted(database)).toEqual([]);
      expect(await leases.read("chat")).toBeUndefined();
      expect((await executions.get("heard")).state.responses).toBe(0);
      const started = await holdfast.start(turn, false);
      expect(await started.result()).toEqual([1, 0, "listener"]);
      expect(await heard.result()).toBe("from the turn");
      expect(await noted(database)).toEqual(["turn"]);
      expect(await kindsOf(holdfast, started.id)).toEqual([
        "created",
        "locked",
        "transactionFinished",
        "finished",
      ]);
      await expectSound(database);
    }),
  );

  test(
    "[RN2] is refused them while it is serializable, with advice that can be followed, and lists in both forms",
    onRuntime(backend, async ({ holdfast, database }) => {
      const { executions } = holdfast;
      await database.write("table", createNoteTable);
      const asking = workflow(
        "asking",
        async (ctx, isolation: "serializable" | "readCommitted") => {
          const send = executions.signal.prepare(ctx.id, "go", "x");
          const attempt = (name: string, part: () => Tx<unknown>): Promise<unknown> =>
            ctx
              .transaction(name, { isolation }, function* () {
                yield* note(name);
                yield* part();
              })
              .then(
                () => "done",
                ({ code, message }: HoldfastError) => [code, message],
              );
          return [
            await attempt("signal", send),
            await attempt("list", executions.list.prepare({})),
          ];
        },
      );
      await holdfast.work([asking]);
      const [refused, list] = (await (
        await holdfast.start(asking, "serializable")
      ).result()) as string[][];
      expect(refused?.[0]).toBe("ISOLATION_MISMATCH");
      expect(refused?.[1]).toContain('{ isolation: "readCommitted" }');
      expect(list?.[0]).toBe("ISOLATION_MISMATCH");
      expect(await noted(database)).toEqual([]);
      const [done, listed] = (await (await holdfast.start(asking, "readCommitted")).result()) as [
        string,
        string[],
      ];
      expect(done).toBe("done");
      expect(listed[0]).toBe("ISOLATION_MISMATCH");
      expect(listed[1]).toContain("Call it before the write");
      expect(await noted(database)).toEqual(["signal"]);
    }),
  );
}

function fenceTests(backend: Backend): void {
  for (const isolation of [...forms, "step"] as const)
    for (const first of ["stale", "holder"] as const)
      test(
        `${isolation === "step" ? "control: both owners of a step that writes" : `[RN2] only the holder of two owners of a transaction, ${isolation},`} that are paused before they commit commit, the ${first} first`,
        onRuntime(backend, async ({ database, another, said }) => {
          await database.write("table", createNoteTable);
          const clock = manualClock(T0);
          const meddling = { stale: new Meddling(database), holder: new Meddling(database) };
          const stale = await another({ clock: manualClock(T0) }, meddling.stale.database);
          const holder = await another({ clock }, meddling.holder.database);
          const written = { stale: gate(), holder: gate() };
          const book = (owner: "stale" | "holder") =>
            workflow("book", (ctx) =>
              isolation === "step"
                ? ctx.step("book", async () => {
                    await meddling[owner].database.write("transaction book", () => note(owner));
                    written[owner].open();
                    return owner;
                  })
                : ctx.transaction("book", { isolation }, function* () {
                    yield* note(owner);
                    return owner;
                  }),
            );
          const held = {
            stale: meddling.stale.holdNext("transaction book", "call"),
            holder: meddling.holder.holdNext("transaction book", "call"),
          };
          await stale.work([book("stale")], { lease: leaseMs });
          const started = await stale.start(book("stale"), undefined, { id: "booked" });
          await held.stale.reached;
          await holder.work([book("holder")], { lease: leaseMs });
          clock.advance(leaseMs);
          await until(async () => (await kindsOf(holder, "booked")).includes("attemptTimedOut"));
          clock.advance(200);
          await held.holder.reached;
          const isRefused = (): boolean =>
            said.some(({ message }) => message.includes("no longer has run"));
          const commit = async (owner: "stale" | "holder"): Promise<void> => {
            held[owner].release();
            if (isolation === "step") await written[owner].opened;
            else if (owner === "stale") await until(isRefused);
            else await started.result();
          };
          await commit(first);
          await commit(first === "stale" ? "holder" : "stale");
          expect(await started.result()).toBe("holder");
          expect(await noted(database)).toEqual(
            isolation === "step" ? ["holder", "stale"] : ["holder"],
          );
          await expectSound(database);
        }),
      );
}

type Target = "own" | "child" | "parent";

/** The parts that change another run, or the own one, at the version that its log has come to. */
function meddlings(
  { executions }: Holdfast,
  id: string,
  version: number,
): Readonly<Record<string, () => Tx<unknown>>> {
  const step = {
    kind: "stepFinished",
    name: "forged",
    inputHash: null,
    outcome: "completed",
    value: 1,
    call: 99,
  } as const;
  return {
    signal: executions.signal.prepare(id, "go", "inside"),
    end: executions.finish.prepare(id, version, { kind: "completed", value: "ended inside" }),
    cancel: executions.cancel.prepare(id),
    pause: executions.pause.prepare(id),
    append: executions.append.prepare(id, version, [step]),
  };
}

function ownRunTests(backend: Backend): void {
  const expected: Readonly<Record<Target, Readonly<Record<string, readonly unknown[]>>>> = {
    // What the transaction came to, and how parent, own run and child ended.
    own: {
      signal: ["done", "own: inside"],
      end: ["EXECUTION_CHANGED_INSIDE", "own: -"],
      cancel: ["EXECUTION_CHANGED_INSIDE", "own: -"],
      pause: ["EXECUTION_CHANGED_INSIDE", "own: -"],
      append: ["EXECUTION_CHANGED_INSIDE", "own: -"],
    },
    child: {
      signal: ["done", "child: inside"],
      end: ["done", "child: ended inside"],
      cancel: ["done", "child: cancelled"],
    },
    parent: {
      signal: ["done", "parent: inside"],
      end: ["done", "parent: ended inside"],
      cancel: ["done", "parent: cancelled"],
    },
  };
  for (const [target, actions] of Object.entries(expected))
    for (const [action, outcome] of Object.entries(actions))
      test(
        `[RN2] that would ${action} its ${target === "own" ? "own run" : target} is done or refused, and no run hangs`,
        onRuntime(backend, async ({ holdfast, database }) => {
          await database.write("table", createNoteTable);
          const codes: unknown[] = [];
          const child = workflow("child", (ctx) => ctx.receive(go));
          const own = workflow("own", async (ctx) => {
            const below = ctx.spawn(child);
            const id = target === "own" ? ctx.id : target === "child" ? below.id : "parent";
            if (target !== "own")
              await ctx.step("look", () =>
                until(async () => {
                  const found = await holdfast.executions.get(id).catch(() => undefined);
                  return found?.state.pending.kind === "blocked";
                }),
              );
            const code = await codeOf(
              ctx.transaction("t", { isolation: "readCommitted" }, function* () {
                yield* note(ctx.id);
                const { nextVersion } = yield* holdfast.executions.get.prepare(id)();
                const part = meddlings(holdfast, id, nextVersion)[action];
                if (part !== undefined) yield* part();
              }),
            );
            codes.push(code);
            if (target === "own")
              return code === "done" ? `own: ${await ctx.receive(go)}` : "own: -";
            if (code !== "done") return "own: -";
            if (target === "child")
              return `child: ${await below.result().catch((error: { kind: string }) => error.kind)}`;
            return "own";
          });
          const parent = workflow("parent", async (ctx) => {
            const below = ctx.spawn(own);
            const heard = target === "parent" ? ctx.receive(go) : undefined;
            const said = await Promise.race([
              ...(heard === undefined ? [] : [heard.then((value) => `parent: ${value}`)]),
              below
                .result()
                .then((value) => (value === "own" ? new Promise<never>(() => {}) : value)),
            ]);
            return said;
          });
          await holdfast.work([parent, own, child]);
          const started = await holdfast.start(parent, undefined, { id: "parent" });
          const ended = await started.result().then(
            (value) => (value === "ended inside" ? `parent: ${value}` : value),
            (error: { kind: string }) => `parent: ${error.kind}`,
          );
          await until(() => codes.length > 0);
          expect([codes[0], ended]).toEqual(outcome);
          const notes = await noted(database);
          expect(notes).toHaveLength(codes[0] === "done" ? 1 : 0);
          await until(async () => {
            const { items } = await holdfast.executions.list({});
            return items.every(({ state }) => state.pending.kind === "finished");
          });
          await expectSound(database);
        }),
      );
}

function optionTests(backend: Backend): void {
  test(
    "[RN2] are checked before its call exists: nothing is written, and the body never runs",
    onRuntime(backend, async ({ holdfast }) => {
      let bodies = 0;
      const body = function* (): Tx<void> {
        bodies += 1;
      };
      const asyncBody = async (): Promise<void> => {
        bodies += 1;
      };
      const given: readonly (readonly unknown[])[] = [
        [{ isolation: "snapshot" }, body],
        [{ isolation: null }, body],
        [{ isolation: 1 }, body],
        [{ retry: 3 }, body],
        [{ retry: { maxRetries: -1 } }, body],
        [{ retry: { backoff: "soon" } }, body],
        [{ timeout: "1s" }, body],
        [{ fence: { executor: "a", run: "b" } }, body],
        [null, body],
        ["readCommitted", body],
        [{ isolation: "readCommitted" }],
        [{ isolation: "readCommitted" }, "body"],
        [{ isolation: "readCommitted" }, body()],
        [{ isolation: "readCommitted" }, asyncBody],
        [asyncBody],
        [{}, async function* () {}],
      ];
      const strange = workflow("strange", async (ctx) => {
        const codes: unknown[] = [];
        for (const rest of given)
          codes.push(
            await codeOf(ctx.transaction("t", ...(rest as [TransactionOptions, () => Tx<void>]))),
          );
        return codes;
      });
      await holdfast.work([strange]);
      const started = await holdfast.start(strange);
      const codes = (await started.result()) as readonly string[];
      const valid = ["OPTION_INVALID", "DURATION_INVALID", "OPERATION_INVALID"];
      expect(codes.filter((code) => !valid.includes(code))).toEqual([]);
      expect(codes).toHaveLength(given.length);
      expect(codes.slice(-3)).toEqual(Array<string>(3).fill("OPERATION_INVALID"));
      expect(bodies).toBe(0);
      expect(await kindsOf(holdfast, started.id)).toEqual(["created", "locked", "finished"]);
    }),
  );
}
