import { describe, expect, onTestFinished, test } from "vitest";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Run } from "../../../src/runtime/client/run-handle.ts";
import { run as execute } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { AppendEvents } from "../../../src/stores/execution/log/append.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { appends, Meddling } from "./meddling.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

export function runtimeManySuite(backend: Backend): void {
  describe("many at once", () => {
    test(
      "[RT15] 1,500 children of one parent are asked for in appends that fit, and in no turn of the loop more than 200",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        let turn = 0;
        let timer = setImmediate(function next() {
          turn += 1;
          timer = setImmediate(next);
        });
        onTestFinished(() => clearImmediate(timer));
        const created = new Map<number, number>();
        meddling.on("appendEvents", (_, { children = [] }: Pick<AppendEvents, "children">) => {
          created.set(turn, (created.get(turn) ?? 0) + children.length);
          return undefined;
        });
        const child = workflow("child", async (_, n: number) => n);
        const parent = workflow("parent", async (ctx) => {
          const all = await Promise.all(
            Array.from({ length: 1_500 }, (_, n) => ctx.call(child, n)),
          );
          return all.reduce((a, b) => a + b, 0);
        });
        await holdfast.work([parent, child]);
        const run = await holdfast.start(parent);
        expect(await run.result()).toBe((1_499 * 1_500) / 2);
        const counts = [...created.values()];
        expect(counts.reduce((a, b) => a + b)).toBe(1_500);
        expect(Math.max(...counts)).toBeLessThanOrEqual(200);
      }),
    );

    test(
      "1,100 receives whose time is over together end alike live and replayed, also when a signal comes meanwhile",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const note = signal<string>("note");
        const patient = workflow("patient", async (ctx) => {
          const all = await Promise.all(
            Array.from({ length: 1_100 }, () => ctx.receive(note, { timeout: 1 })),
          );
          const got = all.flatMap((value, n) => (value === "x" ? [n] : []));
          const live = await ctx.step("live", () => got);
          await ctx.sleep(1);
          return { live, replayed: got };
        });
        await holdfast.work([patient], { hotRunsMax: 0 });
        const first = meddling.holdNext("appendEvents", "call", appends("receiveTimedOut"));
        const run = await holdfast.start(patient);
        await first.reached;
        const read = meddling.holdNext("listResponses", "answer");
        await run.signal(note, "x");
        await read.reached;
        read.release();
        first.release();
        const { live, replayed } = await run.result();
        expect(live).toHaveLength(1);
        expect(replayed).toEqual(live);
      }),
    );

    test(
      "runs that wait are looked at together when the app writes to its own tables, and hear what they missed",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        await database.setUp("test", [
          {
            name: "0001_visit",
            *up() {
              yield* execute(sql`CREATE TABLE visit (n INTEGER NOT NULL)`);
            },
          },
        ]);
        const note = signal<string>("note");
        const waiting = workflow("waiting", async (ctx) => ctx.receive(note));
        await holdfast.work([waiting]);
        const runs = await holdfast.startMany(
          waiting,
          Array.from({ length: 20 }, () => ({ input: undefined })),
        );
        for (const { id } of runs)
          await until(async () => (await kindsOf(holdfast, id)).includes("waiting"));
        let reads = 0;
        for (const read of ["readExecution", "listResponses"])
          meddling.on(read, (go) => {
            reads += 1;
            return go();
          });
        const looked = meddling.holdNext("readStandings", "answer");
        for (let write = 0; write < 10; write += 1)
          await database.write("app", function* () {
            yield* execute(sql`INSERT INTO visit VALUES (${write})`);
          });
        await looked.reached;
        looked.release();
        expect(reads).toBe(0);
        await Promise.all(runs.map((each) => each.signal(note, "x")));
        expect(await runs[0]?.result()).toBe("x");
      }),
    );

    test(
      "a run that waits for a place is not read again for each signal that it is sent",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const note = signal<number>("note");
        const begun = gate();
        const held = gate();
        const busy = workflow("busy", async (ctx) =>
          ctx.step("long", async () => {
            begun.open();
            await held.opened;
          }),
        );
        const count = 40;
        const reading = workflow("reading", async (ctx) => {
          let sum = 0;
          while (sum < count) sum += await ctx.receive(note);
          return sum;
        });
        await holdfast.work([busy, reading], { concurrency: 1 });
        const run = await holdfast.start(reading, undefined, { id: "r" });
        await until(async () => (await kindsOf(holdfast, "r")).includes("waiting"));
        await holdfast.start(busy);
        await begun.opened;
        let reads = 0;
        meddling.on("listResponses", (go) => {
          reads += 1;
          return go();
        });
        for (let sent = 0; sent < count; sent += 1) await run.signal(note, 1);
        expect(reads).toBeLessThan(5);
        held.open();
        expect(await run.result()).toBe(count);
      }),
    );

    test(
      "[RT15] four parents at concurrency 4 do not starve their children",
      onRuntime(backend, async ({ holdfast }) => {
        const child = activity("child", async (_, n: number) => n);
        const parent = workflow("parent", async (ctx, n: number) => ctx.call(child, n));
        await holdfast.work([parent, child], { concurrency: 4 });
        const runs = await Promise.all([1, 2, 3, 4].map((n) => holdfast.start(parent, n)));
        expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 2, 3, 4]);
      }),
    );

    test(
      "runs that wait are kept in memory while their values fit, and going on costs the others one replay",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const go = signal("go");
        const tally = new Tally();
        const large = workflow("large", async (ctx, name: string) => {
          tally.count(`${name} begins`);
          const text = await ctx.step("read", () => {
            tally.count(`${name} reads`);
            return "x".repeat(100_000);
          });
          await ctx.receive(go);
          return text.length;
        });
        await holdfast.work([large], { hotBytesMax: 250_000 });
        const names = ["a", "b", "c", "d"];
        let resting = 0;
        meddling.on("appendEvents", async (call, input) => {
          const answer = await call();
          if (appends("waiting")(input)) resting += 1;
          return answer;
        });
        const runs: Run<number>[] = [];
        for (const id of names) {
          runs.push(await holdfast.start(large, id, { id }));
          // One after the other, as their worker hears of it.
          await until(() => resting === runs.length);
        }
        const isEvicted = async (id: string): Promise<boolean> =>
          (await kindsOf(holdfast, id)).includes("unlocked");
        await until(() => isEvicted("b"));
        expect(await Promise.all(names.map(isEvicted))).toEqual([true, true, false, false]);
        for (const run of runs) await run.signal(go);
        for (const run of runs) expect(await run.result()).toBe(100_000);
        expect(tally.all).toEqual({
          "a begins": 2,
          "a reads": 1,
          "b begins": 2,
          "b reads": 1,
          "c begins": 1,
          "c reads": 1,
          "d begins": 1,
          "d reads": 1,
        });
      }),
    );

    test(
      "one function with many runs leaves places to others, also of a worker that has one",
      onRuntime(backend, async ({ holdfast, another }) => {
        const order: string[] = [];
        const busy = workflow("busy", async () => void order.push("busy"));
        const rare = workflow("rare", async () => void order.push("rare"));
        const starts = Array.from({ length: 120 }, () => ({
          input: undefined,
        }));
        const many = await holdfast.startMany(busy, starts);
        const few = await holdfast.startMany(rare, starts.slice(0, 3));
        await (await another()).work([busy, rare], { concurrency: 1 });
        await Promise.all([...many, ...few].map((run) => run.result()));
        expect(order.slice(0, 6).filter((name) => name === "rare")).toHaveLength(3);
      }),
    );

    test(
      "[E56] [E59] a worker at its limit locks nothing, and goes on when a place is given back",
      onRuntime(backend, async ({ holdfast, another }) => {
        const opened = gate();
        const tally = new Tally();
        const busy = activity("busy", async () => {
          tally.count("begun");
          await opened.opened;
        });
        const rare = workflow("rare", async () => "rare");
        const elsewhere = workflow("elsewhere", async () => "elsewhere");
        await holdfast.work([busy, rare], { concurrency: 2 });
        await (await another()).work([elsewhere]);
        const four = await holdfast.startMany(busy, [{}, {}, {}, {}]);
        await until(() => tally.of("begun") === 2);
        const late = await holdfast.start(rare);
        // A worker that has a place takes up what comes later.
        await (await holdfast.start(elsewhere)).result();
        const kinds = await Promise.all([...four, late].map((run) => kindsOf(holdfast, run.id)));
        expect(kinds.map((each) => each.join(" ")).toSorted()).toEqual([
          "created",
          "created",
          "created",
          "created locked",
          "created locked",
        ]);
        opened.open();
        await Promise.all(four.map((run) => run.result()));
        expect(await late.result()).toBe("rare");
        expect(tally.of("begun")).toBe(4);
      }),
    );

    test(
      "[E59] a function's limit holds over two workers",
      onRuntime(backend, async ({ holdfast, another }) => {
        const opened = gate();
        const tally = new Tally();
        let running = 0;
        const busy = activity("busy", { concurrency: 2 }, async () => {
          running += 1;
          tally.count(`at most ${Math.max(running, 2)}`);
          await opened.opened;
          running -= 1;
        });
        const other = await another();
        await holdfast.work([busy], { concurrency: 8 });
        await other.work([busy], { concurrency: 8 });
        const runs = await holdfast.startMany(
          busy,
          Array.from({ length: 6 }, () => ({ input: undefined })),
        );
        await until(() => running === 2);
        opened.open();
        await Promise.all(runs.map((run) => run.result()));
        expect(tally.all).toEqual({ "at most 2": 6 });
      }),
    );

    test(
      "[E59] the limit of a key holds over two workers, leaves places to other keys, and a run that waits does not count",
      onRuntime(backend, async ({ holdfast, another }) => {
        const opened = gate();
        const tally = new Tally();
        const running = { ada: 0, bob: 0 };
        type Key = keyof typeof running;
        const limited = { concurrencyPerKey: 1 };
        const mail = activity("mail", limited, async (_, key: Key) => {
          running[key] += 1;
          tally.count(`${running[key]} of ${key}`);
          await opened.opened;
          running[key] -= 1;
        });
        const go = signal("go");
        const patient = workflow("patient", limited, async (ctx) => {
          tally.count("patient");
          await ctx.receive(go);
        });
        const other = await another();
        await holdfast.work([mail, patient]);
        await other.work([mail, patient]);
        const keys: readonly Key[] = ["ada", "bob"];
        const mails = await holdfast.startMany(
          mail,
          [...keys, ...keys, ...keys].map((key) => ({
            input: key,
            concurrencyKey: key,
          })),
        );
        const waiting = await holdfast.startMany(
          patient,
          [1, 2, 3].map(() => ({ concurrencyKey: "ada" })),
        );
        await until(() => running.ada === 1 && running.bob === 1);
        await until(() => tally.of("patient") === 3);
        opened.open();
        for (const run of waiting) await run.signal(go);
        await Promise.all([...mails, ...waiting].map((run) => run.result()));
        expect(tally.of("1 of ada")).toBe(3);
        expect(tally.of("1 of bob")).toBe(3);
      }),
    );

    test(
      "[RT14] a history of many events and responses replays to the same end",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const child = workflow("child", async (_, n: number) => n);
        const long = workflow("long", async (ctx) => {
          let sum = 0;
          for (let n = 0; n < 150; n += 1) {
            sum += await ctx
              .step(`step ${n}`, () => {
                tally.count("step");
                return { n, text: "x".repeat(8_000) };
              })
              .then((value) => value.n);
            if (n % 10 === 0) sum += await ctx.call(child, n);
          }
          await Promise.all(Array.from({ length: 250 }, (_, n) => ctx.call(child, n)));
          await ctx.sleep(1);
          return sum;
        });
        await holdfast.work([long, child], { hotRunsMax: 0 });
        const run = await holdfast.start(long);
        // 0 + … + 149, and every tenth again.
        expect(await run.result({ timeout: "50s" })).toBe(11_175 + 1_050);
        expect(tally.of("step")).toBe(150);
      }),
    );

    test(
      "[E62] [E72] [E75] a set gives results as they come, and says when all were taken",
      onRuntime(backend, async ({ holdfast }) => {
        const gates = [gate(), gate()];
        const child = activity("child", async (_, n: number) => {
          await gates[n]?.opened;
          return n;
        });
        const parent = workflow("parent", async (ctx) => {
          const set = ctx.joinSet<number>();
          set.spawn(child, 0);
          set.spawn(child, 1);
          const before = set.try();
          const first = await set.next();
          const second = await set.next();
          return {
            before,
            first,
            second,
            third: await set.next(),
            after: set.try(),
          };
        });
        await holdfast.work([parent, child], { hotRunsMax: 0 });
        const run = await holdfast.start(parent, undefined, { id: "p" });
        await until(async () => (await run.status()) === "blocked");
        gates[1]?.open();
        await until(async () => (await holdfast.executions.responses("p")).items.length === 1);
        gates[0]?.open();
        expect(await run.result()).toEqual({
          before: { kind: "pending" },
          first: 1,
          second: 0,
          third: undefined,
          after: { kind: "allTaken" },
        });
      }),
    );

    test(
      "[E66] the token of an external is good as soon as a step can tell it, in place or later",
      onRuntime(backend, async ({ holdfast }) => {
        const told: string[] = [];
        const asking = workflow("telling", async (ctx, isSync: boolean) => {
          const answer = ctx.external<string>();
          await ctx.step("tell", () => {
            if (!isSync) return holdfast.resolve(answer.token, "early");
            told.push(answer.token);
            return undefined;
          });
          return answer.result();
        });
        await holdfast.work([asking]);
        const later = await holdfast.start(asking, false);
        expect(await later.result()).toBe("early");
        const inPlace = await holdfast.start(asking, true);
        await until(() => told.length > 0);
        await holdfast.resolve(told[0] ?? "", "at once");
        expect(await inPlace.result()).toBe("at once");
      }),
    );

    test(
      "[E66] [E67] an external is resolved by its token, twice with the same value, not with another",
      onRuntime(backend, async ({ holdfast }) => {
        const tokens: string[] = [];
        const asking = workflow("asking", async (ctx) => {
          const answer = ctx.external<string>();
          await ctx.step("mail the token", () => tokens.push(answer.token));
          return answer.result();
        });
        await holdfast.work([asking], { hotRunsMax: 0 });
        const run = await holdfast.start(asking);
        await until(() => tokens.length > 0);
        const [token = ""] = tokens;
        await expect(holdfast.resolve(`${token}0`, "guessed")).rejects.toMatchObject({
          code: "AWAIT_TOKEN_INVALID",
        });
        await expect(holdfast.resolve(token, { deep: Symbol("none") })).rejects.toMatchObject({
          code: "NOT_SERIALIZABLE",
          details: { path: "$.deep" },
        });
        await until(async () => (await run.status()) === "blocked");
        await holdfast.resolve(token, "yes");
        await holdfast.resolve(token, "yes");
        await expect(holdfast.resolve(token, "no")).rejects.toMatchObject({
          code: "RESOLUTION_CONFLICT",
        });
        expect(await run.result()).toBe("yes");
      }),
    );
  });
}
