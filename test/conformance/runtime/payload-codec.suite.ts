import { describe, expect, test } from "vitest";
import type { PayloadCodec } from "../../../src/model/values/payload-codec.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { schedule } from "../../../src/runtime/schedules/schedule.ts";
import { holdfastOn } from "../../../src/open/open-holdfast.ts";
import type { Database } from "../../../src/sql/database.ts";
import { rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { awaitEvents } from "../../../src/stores/effect/await/await-events.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import { payloadSeal } from "../../../src/stores/payload-seal.ts";
import { queue } from "../../../src/stores/queue/queue.ts";
import { schedules } from "../../../src/stores/schedule/schedules.ts";
import { overlaid } from "../../../src/testing/overlaid.ts";
import { keyedCodec } from "../../fixtures/keyed-codec.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { expectSound } from "../sound.ts";
import { until } from "./waiting.ts";

const go = signal<string>("go");
const patient = workflow("patient", async (ctx, text: string) => {
  ctx.setProgress(`progress of ${text}`);
  return `${text} ${await ctx.receive(go)}`;
});

/** As many processes as a test wants on one database, each with a memory of its own. */
interface Processes {
  /** Another process, as far as the stores can tell. */
  readonly database: () => Database;
  readonly open: (payload?: PayloadCodec) => Promise<Holdfast>;
}

function onProcesses(
  backend: Backend,
  body: (processes: Processes) => Promise<void>,
): () => Promise<void> {
  return () =>
    withPlace(backend, async (place) => {
      const shared = await place.open();
      const database = (): Database => overlaid(shared, { close: () => Promise.resolve() });
      const opened: Holdfast[] = [];
      const open = async (payload?: PayloadCodec): Promise<Holdfast> => {
        const stores = payload === undefined ? {} : { payload };
        const holdfast = await holdfastOn(database(), stores, () => undefined);
        opened.push(holdfast);
        return holdfast;
      };
      try {
        await body({ database, open });
      } finally {
        await Promise.all(opened.map((holdfast) => holdfast.close({ timeout: "2s" })));
      }
    });
}

/** All that is stored of runs, as it is stored. */
async function storedRuns(database: Database): Promise<string> {
  const found = await database.read("stored", function* () {
    return [
      yield* rows(sql`SELECT id, version, state FROM holdfast_execution ORDER BY id`),
      yield* rows(sql`SELECT kind, payload FROM holdfast_execution_event ORDER BY seq`),
      yield* rows(
        sql`SELECT seq, payload FROM holdfast_execution_response ORDER BY execution, seq`,
      ),
    ];
  });
  return JSON.stringify(found);
}

/** A database with an ended and a waiting run, both encrypted. */
async function encrypted({ open }: Processes): Promise<Holdfast> {
  const holdfast = await open(keyedCodec("one"));
  await holdfast.work([patient]);
  const done = await holdfast.start(patient, "first", { id: "done" });
  await done.signal(go, "went");
  expect(await done.result()).toBe("first went");
  await holdfast.start(patient, "second", { id: "open" });
  await until(async () => (await holdfast.get(patient, "open").status()) === "blocked");
  return holdfast;
}

/** Every way to a value that a runtime and its pages have. */
function attempts(holdfast: Holdfast): Readonly<Record<string, () => Promise<unknown>>> {
  const open = holdfast.get(patient, "open");
  const done = holdfast.get(patient, "done");
  return {
    work: () => holdfast.work([patient]),
    start: () => holdfast.start(patient, "third"),
    startMany: () => holdfast.startMany(patient, [{ input: "third" }]),
    signal: () => open.signal(go, "now"),
    result: () => done.result(),
    history: () => done.history(),
    events: () => holdfast.executions.events("open"),
    create: () => holdfast.executions.create({ id: "c", function: "f", input: 1 }),
    append: () =>
      holdfast.executions.append("open", 9, [
        { kind: "stepFinished", name: "s", value: 1 },
      ] as never),
    fork: () => done.fork({ id: "forked", input: "other" } as never),
    lock: () =>
      holdfast.executions.lockPending({
        holder: { executor: "x" as never, run: "r" as never },
        lease: "10s",
        functions: ["patient"],
        limit: 1,
      } as never),
    enqueue: () => holdfast.queue.enqueue("chat", { items: [{ kind: "input", payload: "x" }] }),
    process: () =>
      holdfast.processes.register({ id: "p", kind: "k", input: 1, events: {} } as never),
  };
}

const operation = { kind: "operation", id: "o" } as const;

/** Each way to give a database its first value in the clear. */
const firstValues: Readonly<Record<string, (plain: Holdfast) => Promise<unknown>>> = {
  "a run": ({ executions: page }) => page.create({ id: "a", function: "f", input: "clear" }),
  "a turn": async ({ sessions, leases }) => {
    await sessions.create("s");
    const handle = await sessions.open("s");
    if (handle === undefined) throw new Error("The session is there.");
    const taken = await leases.acquire("s", { owner: "ada", incarnation: "1" });
    if (taken.kind !== "acquired") throw new Error("The lease is free.");
    const nodes = [{ kind: "message", role: "user", payload: "clear" }] as const;
    await sessions.commit(handle, { turn: "t", fence: taken.lease, nodes });
  },
  "a queued item": async (plain) => {
    await plain.sessions.create("s");
    await plain.queue.enqueue("s", { items: [{ kind: "input", payload: "clear" }] });
  },
  "a process": ({ processes }) => processes.register({ id: "p", kind: "tool", input: "clear" }),
  "an effect": ({ effects }) =>
    effects.execute(operation, "k", { kind: "llm", input: "clear" }, () => "clear"),
  "an answer from outside": ({ database }) => awaitEvents(database).open(operation, "e"),
  "a schedule": ({ database }) => schedules(database).put("report", "hourly", { every: "1h" }),
  "a schedule of runs": (plain) =>
    plain.work([patient, schedule("nightly", { cron: "0 2 * * *" }, patient, "clear")]),
  "a subscription": ({ triggers }) => triggers.subscribe({ key: "k", ...subscribed }),
  "an occurrence": ({ triggers }) =>
    triggers.record({ key: "o", source: subscribed.source, payload: "clear" }),
};

const subscribed = {
  source: { type: "webhook", key: "w" },
  target: { kind: "tool" },
  grant: { label: "mine" },
} as const;

/** What is refused before the codec is asked says nothing here. */
const touching = ["work", "start", "startMany", "signal", "result", "history", "events", "create"];

export function runtimePayloadCodecSuite(backend: Backend): void {
  describe("a database whose values go through a payload codec", () => {
    for (const [given, payload, code] of [
      ["without the codec", undefined, "PAYLOAD_CODEC_MISSING"],
      ["with another key", keyedCodec("two"), "PAYLOAD_CODEC_WRONG"],
    ] as const)
      test(
        `refuses work and every value ${given}, and is left as it was`,
        onProcesses(backend, async (processes) => {
          const owner = await encrypted(processes);
          const before = await storedRuns(owner.database);
          const other = await processes.open(payload);
          for (const name of touching)
            expect([name, await rejection(attempts(other)[name]?.() as Promise<unknown>)]).toEqual([
              name,
              expect.objectContaining({ code }),
            ]);
          for (const attempt of Object.values(attempts(other)))
            await attempt().catch(() => undefined);
          expect(await storedRuns(owner.database)).toBe(before);
          await owner.get(patient, "open").signal(go, "on");
          expect(await owner.get(patient, "open").result()).toBe("second on");
        }),
      );

    test(
      "lists, pauses, unparks and cancels runs without the codec, and shows progress as sealed",
      onProcesses(backend, async (processes) => {
        const owner = await encrypted(processes);
        await owner.executions.create({ id: "new", function: "nobody", input: "secret" });
        const other = await processes.open();
        const { items, damaged } = await other.runs.list();
        expect(items.map(({ id }) => id as string).toSorted()).toEqual(["done", "new", "open"]);
        expect(damaged).toEqual([]);
        const run = other.get(patient, "open");
        expect(await run.status()).toBe("blocked");
        expect(await run.progress()).toBe("sealed");
        await other.executions.pause("new");
        await other.executions.unpause("new");
        await other.executions.cancel("new", { reason: "not needed" });
        expect(await other.executions.result("new")).toEqual({
          kind: "cancelled",
          reason: "not needed",
        });
        await run.cancel();
        expect(await rejection(owner.get(patient, "open").result())).toMatchObject({
          kind: "cancelled",
        });
        const report = await other.maintenance.check();
        expect(report).toMatchObject({ damaged: [], isSealed: true });
        await expectSound(owner.database, keyedCodec("one"));
        await other.executions.erase("done");
        expect((await other.runs.list()).items).toHaveLength(2);
      }),
    );

    test(
      "takes a codec that still reads the old key, and refuses the one that no longer does",
      onProcesses(backend, async (processes) => {
        await encrypted(processes);
        const rotated = await processes.open(keyedCodec("two", "one"));
        expect(await rotated.get(patient, "done").result()).toBe("first went");
        await rotated.executions.create({ id: "later", function: "f", input: 1 });
        const forgetful = await processes.open(keyedCodec("two"));
        expect(await rejection(forgetful.get(patient, "done").result())).toMatchObject({
          code: "PAYLOAD_CODEC_WRONG",
          details: { codec: "keyed two", expected: "keyed one" },
        });
      }),
    );

    test(
      "parks a run whose values a lost key encrypted, works on others, and resumes it with the key",
      onProcesses(backend, async ({ open }) => {
        await open(keyedCodec("one"));
        const rotated = await open(keyedCodec("two", "one"));
        await rotated.executions.create({ id: "due", function: "patient", input: "first" });
        const forgetful = await open(keyedCodec("one"));
        await forgetful.work([patient]);
        await until(async () => (await forgetful.get(patient, "due").status()) === "parked");
        const { items } = await forgetful.runs.list({ status: "parked" });
        expect(items).toMatchObject([
          { id: "due", interruption: { kind: "parked", code: "PAYLOAD_CODEC_FAILED" } },
        ]);
        const other = await forgetful.start(patient, "second");
        await other.signal(go, "on");
        expect(await other.result()).toBe("second on");
        await forgetful.close();
        await rotated.work([patient]);
        const run = rotated.get(patient, "due");
        await run.unpark();
        await run.signal(go, "on");
        expect(await run.result()).toBe("first on");
        expect((await rotated.maintenance.check()).damaged).toEqual([]);
      }),
    );

    test(
      "keeps pages without the codec from values too, also as parts of a transaction",
      onProcesses(backend, async ({ database }) => {
        const sealed = executions(database(), { payload: keyedCodec("one") });
        await sealed.create({ id: "a", function: "f", input: "secret" });
        const before = await storedRuns(database());
        const plain = database();
        const page = executions(plain);
        expect(await rejection(page.create({ id: "b", function: "f", input: 1 }))).toMatchObject({
          code: "PAYLOAD_CODEC_MISSING",
        });
        const unlearned = database();
        const part = executions(unlearned).create.prepare({ id: "c", function: "f", input: 1 });
        const write = unlearned.write("part", () => part() as never, {
          isolation: "readCommitted",
        });
        expect(await rejection(write)).toMatchObject({ code: "PAYLOAD_CODEC_MISSING" });
        const enqueued = queue(database()).enqueue("chat", {
          items: [{ kind: "input", payload: "x" }],
        });
        expect(await rejection(enqueued)).toMatchObject({ code: "PAYLOAD_CODEC_MISSING" });
        expect(await storedRuns(database())).toBe(before);
        expect(await page.cancel("a")).toBe("cancelled");
      }),
    );

    test(
      "tells of a recorded effect that its codec is missing, and not that its row is damaged",
      onProcesses(backend, async ({ open }) => {
        const scope = { kind: "turn", session: "s", id: "t" } as const;
        const question = { kind: "llm", input: "secret" };
        const owner = await open(keyedCodec("one"));
        await owner.sessions.create("s");
        await owner.effects.execute(scope, "k", question, () => "secret answer");
        for (const [payload, code] of [
          [undefined, "PAYLOAD_CODEC_MISSING"],
          [keyedCodec("two"), "PAYLOAD_CODEC_WRONG"],
        ] as const) {
          const { effects } = await open(payload);
          expect(await rejection(effects.get(scope, "k"))).toMatchObject({ code });
          const again = effects.execute(scope, "k", question, () => "never");
          expect(await rejection(again)).toMatchObject({ code });
          expect((await effects.list(scope)).items).toHaveLength(1);
        }
      }),
    );

    test(
      "is not forgotten when a read answers late that began before the codec was there",
      onProcesses(backend, async ({ database }) => {
        const own = database();
        const plain = payloadSeal(own, undefined);
        const late = plain.learn("read");
        const asked = late.next();
        if (asked.done === true) throw new Error("It reads the row.");
        const answer = await own.read("asked", function* () {
          return yield asked.value;
        });
        const page = executions(own, { payload: keyedCodec("one") });
        await page.create({ id: "a", function: "f", input: "secret" });
        late.next(answer);
        expect(plain.refusal).toMatchObject({ code: "PAYLOAD_CODEC_MISSING" });
      }),
    );

    test(
      "is not taken as stored when the transaction that brought it was rolled back",
      onProcesses(backend, async ({ database }) => {
        const own = database();
        const page = executions(own, { payload: keyedCodec("one") });
        const part = page.create.prepare({ id: "a", function: "f", input: "secret" });
        const write = own.write(
          "rolled back",
          function* () {
            yield* part();
            throw new Error("no");
          },
          { isolation: "readCommitted" },
        );
        expect((await rejection(write)).message).toBe("no");
        expect(payloadSeal(own, undefined).refusal).toBeUndefined();
        await page.create({ id: "b", function: "f", input: "secret" });
        const forgetful = executions(database()).create({ id: "c", function: "f", input: "clear" });
        expect(await rejection(forgetful)).toMatchObject({ code: "PAYLOAD_CODEC_MISSING" });
      }),
    );

    test(
      "belongs to the one of two first processes that came first, and the other is refused",
      onProcesses(backend, async ({ database }) => {
        const one = executions(database(), { payload: keyedCodec("one") });
        const pages = [
          one,
          executions(database()),
          executions(database(), { payload: keyedCodec("two") }),
        ];
        const made = await Promise.allSettled(
          pages.map((page, n) => page.create({ id: `run${n}`, function: "f", input: n })),
        );
        const kept = made.flatMap(({ status }, n) => (status === "fulfilled" ? n : []));
        expect(kept).toHaveLength(1);
        const page = pages[kept[0] ?? 0];
        expect((await page?.list())?.items).toHaveLength(1);
        expect(await page?.created(`run${kept[0]}`)).toMatchObject({ input: kept[0] });
        for (const { status, reason } of made as { status: string; reason?: unknown }[])
          if (status === "rejected")
            expect(reason).toMatchObject({ code: expect.stringMatching(/^PAYLOAD_CODEC_/) });
      }),
    );
  });

  describe("a database with values in the clear", () => {
    test(
      "refuses a codec that cannot read them, and stays usable without one",
      onProcesses(backend, async ({ open }) => {
        const plain = await open();
        await plain.executions.create({ id: "a", function: "f", input: "clear" });
        const late = await open(keyedCodec("one"));
        expect(await rejection(late.executions.created("a"))).toMatchObject({
          code: "PAYLOAD_CODEC_WRONG",
          details: { codec: "keyed one", expected: null },
        });
        expect(await rejection(late.work([patient]))).toMatchObject({
          code: "PAYLOAD_CODEC_WRONG",
        });
        expect(await rejection(late.start(patient, "x"))).toMatchObject({
          code: "PAYLOAD_CODEC_WRONG",
        });
        await plain.executions.create({ id: "b", function: "f", input: "clear too" });
        expect((await plain.runs.list()).items).toHaveLength(2);
      }),
    );

    test.each(Object.keys(firstValues))(
      "refuses a codec that cannot read them when all that it holds is %s",
      (first) =>
        onProcesses(backend, async ({ open }) => {
          const plain = await open();
          await firstValues[first]?.(plain);
          const late = await open(keyedCodec("one"));
          const created = late.executions.create({ id: "b", function: "f", input: "secret" });
          expect(await rejection(created)).toMatchObject({
            code: "PAYLOAD_CODEC_WRONG",
            details: { codec: "keyed one", expected: null },
          });
        })(),
    );

    test(
      "takes a codec that can, and refuses processes without it from then on",
      onProcesses(backend, async ({ open }) => {
        const plain = await open();
        await plain.executions.create({ id: "a", function: "f", input: "clear" });
        const late = await open(keyedCodec("one", "clear"));
        expect(await late.executions.created("a")).toMatchObject({ input: "clear" });
        await late.executions.create({ id: "b", function: "f", input: "secret" });
        expect(await storedRuns(late.database)).not.toContain("secret");
        const forgetful = await open();
        expect(
          await rejection(forgetful.executions.create({ id: "c", function: "f", input: 1 })),
        ).toMatchObject({ code: "PAYLOAD_CODEC_MISSING" });
      }),
    );

    test(
      "takes a codec under its runs: they go on, repeated calls find them, and nothing is damaged",
      onProcesses(backend, async ({ open }) => {
        const scope = { kind: "turn", session: "s", id: "t" } as const;
        const question = { kind: "llm", input: { text: "clear" } };
        const lesson = signal<{ text: string }>("lesson");
        const echo = activity("echo", async (_, given: { text: string }) => given.text);
        const asking = workflow("asking", async (ctx, given: { text: string }) => {
          const echoed = await ctx.call(echo, given);
          const { id } = await ctx.start(echo, given, { id: "started" });
          return [echoed, id, await ctx.receive(lesson), await ctx.receive(go)];
        });
        const given = { text: "clear" };
        const plain = await open();
        await plain.work([asking, echo]);
        const before = await plain.start(asking, given, { id: "before" });
        await before.signal(lesson, given, { key: "one" });
        await until(async () => (await before.status()) === "blocked");
        await plain.start(echo, given, { id: "done" }).then((run) => run.result());
        await plain.sessions.create("s");
        await plain.effects.execute(scope, "k", question, () => "answer");
        await plain.processes.register({ id: "p", kind: "tool", input: given });
        await plain.close();
        const late = await open(keyedCodec("one", "clear"));
        expect((await late.start(asking, given, { id: "before" })).id).toBe("before");
        expect(
          await rejection(late.start(asking, { text: "other" }, { id: "before" })),
        ).toMatchObject({ code: "EXECUTION_EXISTS" });
        await late.get(asking, "before").signal(lesson, given, { key: "one" });
        expect(await late.effects.execute(scope, "k", question, () => "never")).toBe("answer");
        expect((await late.maintenance.check()).damaged).toEqual([]);
        await late.work([asking, echo]);
        const run = late.get(asking, "before");
        await run.signal(go, "on");
        expect(await run.result()).toEqual(["clear", "started", given, "on"]);
        expect((await late.maintenance.check()).damaged).toEqual([]);
      }),
    );

    test(
      "that has none yet takes a codec, and then no value in the clear from a process that was there before",
      onProcesses(backend, async ({ open, database }) => {
        const earlier = await open();
        const page = executions(database());
        expect((await page.list()).items).toEqual([]);
        const holdfast = await open(keyedCodec("one"));
        const missing = { code: "PAYLOAD_CODEC_MISSING" };
        expect(await rejection(earlier.start(patient, "clear"))).toMatchObject(missing);
        const created = page.create({ id: "c", function: "f", input: "clear" });
        expect(await rejection(created)).toMatchObject(missing);
        await holdfast.executions.create({ id: "a", function: "f", input: "secret" });
        expect(await storedRuns(holdfast.database)).not.toMatch(/clear|secret/);
      }),
    );

    test(
      "keeps its first value from two processes that write it at once in two ways",
      onProcesses(backend, async ({ open }) => {
        const plain = await open();
        const [clear, coded] = await Promise.allSettled([
          plain.executions.create({ id: "a", function: "f", input: "clear" }),
          open(keyedCodec("one")).then(({ executions: page }) =>
            page.create({ id: "b", function: "f", input: "secret" }),
          ),
        ]);
        expect([clear.status, coded.status].toSorted()).toEqual(["fulfilled", "rejected"]);
      }),
    );

    test(
      "that has none yet takes any codec",
      onProcesses(backend, async ({ open }) => {
        const plain = await open();
        expect((await plain.runs.list()).items).toEqual([]);
        const holdfast = await open(keyedCodec("one"));
        await holdfast.work([patient]);
        const run = await holdfast.start(patient, "secret");
        await run.signal(go, "went");
        expect(await run.result()).toBe("secret went");
        expect(await storedRuns(holdfast.database)).not.toContain("secret");
      }),
    );
  });
}
