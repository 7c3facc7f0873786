import { expect, onTestFinished, test } from "vitest";
import { awaitEvents } from "../../../src/effects.ts";
import { activity, schedule, signal, workflow } from "../../../src/index.ts";
import type { Holdfast } from "../../../src/index.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { ManualClock } from "../../../src/model/time/clock.ts";
import { holdfastOn } from "../../../src/open/open-holdfast.ts";
import type { Database } from "../../../src/kernel.ts";
import { bytesOf } from "../../conformance/blob/owners.ts";
import { schedules } from "../../../src/triggers.ts";
import { keyedCodec } from "../../fixtures/keyed-codec.ts";
import { until } from "../place.ts";
import { move, withBoth } from "./moving.ts";

const day = 86_400_000;
const noon = Date.UTC(2026, 10, 17, 12);

/** Where code runs, which code it is, and what it has done. */
interface World {
  side: "source" | "target";
  code: "right" | "wrong";
  readonly done: string[];
  readonly tokens: string[];
}

const approval = signal<string>("approval");

function functionsOf(world: World) {
  /** Never answers where it is left behind. */
  const hangs = (name: string): Promise<string> => {
    world.done.push(`${world.side} ${name}`);
    return world.side === "source" ? new Promise(() => undefined) : Promise.resolve(name);
  };
  const does = (name: string) => (): string => {
    world.done.push(`${world.side} ${name}`);
    return name;
  };
  const charge = activity("charge", () => hangs("charge"));
  return {
    charge,
    sleeper: workflow("sleeper", async (ctx) => {
      const first = await ctx.step("first", does("first"));
      await ctx.sleep("3 days");
      return `${first} slept`;
    }),
    nightly: workflow("nightly", () => Promise.resolve("reported")),
    approver: workflow("approver", (ctx) => ctx.receive(approval)),
    steps: workflow("steps", async (ctx) => {
      const one = await ctx.step("one", does("one"));
      return `${one} ${await ctx.step("two", () => hangs("two"))}`;
    }),
    parent: workflow("parent", (ctx) => ctx.call(charge)),
    caller: workflow("caller", (ctx) => {
      const external = ctx.external<string>();
      world.tokens.push(external.token);
      return external.result();
    }),
    parked: workflow("parked", async (ctx) => {
      const name = world.code === "right" ? "a" : "b";
      const value = await ctx.step(name, does(name));
      return `${value} ${await ctx.receive(approval)}`;
    }),
  };
}

type Functions = ReturnType<typeof functionsOf>;

/** What workers on both sides are given: the functions, and a run every day. */
function servedBy(fns: Functions) {
  const nightly = schedule("nightly", { cron: "0 2 * * *" }, fns.nightly);
  return [...Object.values(fns), nightly];
}

test("runs that sleep, wait, are paused, parked or worked on, sessions, effects and schedules go on in Postgres", () =>
  withBoth(async (folder, place) => {
    const world: World = {
      side: "source",
      code: "right",
      done: [],
      tokens: [],
    };
    const clock = manualClock(noon);
    const said: string[] = [];
    const fns = functionsOf(world);
    await parkable(await opened(await folder.open({ clock }), said), fns);
    world.code = "wrong";
    const source = await opened(await folder.open({ clock }), said);
    await begun(source, fns, world);
    const left = await writeSession(source);

    await move(folder, place, { sqlite: { clock }, postgres: { clock } });
    const stops = (): readonly string[] => said.filter((text) => text.includes("worker stops"));
    // The worker hears of the move by itself.
    await until(() => stops().length > 0);
    expect(stops()).toHaveLength(1);

    world.side = "target";
    world.code = "right";
    const target = await opened(await place.open({ clock }), []);
    await target.work(servedBy(fns));
    await wentOn(target, fns, world, clock);
    await readSession(target, left);
    await woke(target, fns, clock);
    // What was recorded there was not done again here.
    expect(world.done.toSorted()).toEqual([
      "source a",
      "source charge",
      "source first",
      "source first",
      "source one",
      "source two",
      "target charge",
      "target two",
    ]);
    await schedulesFire(target);
  }));

/** A run that other code does not fit. */
async function parkable(holdfast: Holdfast, fns: Functions): Promise<void> {
  await holdfast.work([fns.parked]);
  await holdfast.start(fns.parked, undefined, { id: "parked" });
  await isWaiting(holdfast, "parked");
  await holdfast.close();
}

/** Runs in every state, as far as they get by themselves. */
async function begun(source: Holdfast, fns: Functions, world: World): Promise<void> {
  await source.work(servedBy(fns));
  const parked = source.get(fns.parked, "parked");
  await parked.signal(approval, "mended");
  for (const name of ["sleeper", "approver", "steps", "parent", "caller"])
    await source.start(fns[name as "sleeper"], undefined, { id: name });
  const paused = await source.start(fns.sleeper, undefined, { id: "paused" });
  for (const id of ["paused", "sleeper", "approver", "caller"]) await isWaiting(source, id);
  await paused.pause();
  await until(() => world.done.includes("source charge"));
  await until(() => world.done.includes("source two"));
  await until(async () => (await parked.status()) === "parked");
}

function resultsOf(
  target: Holdfast,
  fns: Functions,
  names: readonly (keyof Functions)[],
): Promise<readonly unknown[]> {
  return Promise.all(names.map((name) => target.get<unknown>(fns[name], name).result()));
}

async function wentOn(
  target: Holdfast,
  fns: Functions,
  { tokens: [token = ""] }: { readonly tokens: readonly string[] },
  clock: ManualClock,
): Promise<void> {
  await target.get(fns.approver, "approver").signal(approval, "yes");
  await target.resolve(token, "from outside");
  await target.get(fns.parked, "parked").unpark();
  expect(await resultsOf(target, fns, ["approver", "caller", "steps", "parked"])).toEqual([
    "yes",
    "from outside",
    "one two",
    "a mended",
  ]);
  // The attempt that was left behind may have charged, so that it counts, and the next one comes after a pause.
  clock.advance(60_000);
  expect(await resultsOf(target, fns, ["parent"])).toEqual(["charge"]);
}

async function woke(target: Holdfast, fns: Functions, clock: ManualClock): Promise<void> {
  const paused = target.get(fns.sleeper, "paused");
  expect(await paused.status()).toBe("paused");
  await paused.resume();
  await isWaiting(target, "paused");
  clock.advance(3 * day);
  expect(await resultsOf(target, fns, ["sleeper"])).toEqual(["first slept"]);
  expect(await paused.result()).toBe("first slept");
}

async function opened(database: Database, said: string[]): Promise<Holdfast> {
  const holdfast = await holdfastOn(database, {}, ({ message }) => {
    said.push(message);
  });
  onTestFinished(() => holdfast.close({ timeout: 0 }));
  return holdfast;
}

/** It has come as far as it gets by itself. */
function isWaiting(holdfast: Holdfast, id: string): Promise<void> {
  return until(async () => {
    const { state } = await holdfast.executions.get(id);
    return state.pending.kind === "blocked";
  });
}

const turn = { kind: "turn", session: "chat", id: "t1" } as const;
const asked = { kind: "llm", input: { prompt: "a" } };
const scopeless = { kind: "operation", id: "o" } as const;

interface Left {
  readonly token: string;
  readonly attachment: string;
}

async function writeSession(holdfast: Holdfast): Promise<Left> {
  const { sessions, leases, queue, effects, triggers } = holdfast;
  const chat = await sessions.create("chat");
  const fence = await leases.waitForLease(chat, {
    owner: "ada",
    incarnation: "1",
  });
  const picture = bytesOf("picture");
  const { id } = await holdfast.attachments.put(chat, picture, {
    mediaType: "image/png",
  });
  await sessions.commit(chat, {
    turn: "t1",
    fence,
    nodes: [{ id: "n1", kind: "message", role: "user", payload: "hi" }],
    attachments: [id],
  });
  await sessions.fork(chat, "fork");
  await queue.enqueue(chat, {
    source: "later",
    items: [{ kind: "input", payload: "next" }],
  });
  await effects.execute(turn, "ask", asked, () => 42);
  const { database } = holdfast;
  const { token } = await awaitEvents(database).open(scopeless, "yes");
  await schedules(database).put("mine", "daily", { cron: "0 9 * * *" });
  await triggers.subscribe({
    key: "daily",
    source: { every: "1 day" },
    target: { kind: "report" },
  });
  return { token, attachment: id };
}

/** The lease of a process left behind is to be had at once, and all else is as it was. */
async function readSession(holdfast: Holdfast, { token, attachment }: Left): Promise<void> {
  const { sessions, leases, queue, effects } = holdfast;
  const fence = await leases.waitForLease("chat", {
    owner: "bob",
    incarnation: "2",
  });
  expect(fence.fence).toBe(2);
  const work = await queue.claimTurn(fence, { key: "t2" });
  if (work === undefined) throw new Error("The queue is empty.");
  const { content } = await holdfast.attachments.get("chat", attachment);
  expect(Buffer.from(content).toString()).toBe("picture");
  const draft = (id: string) => ({
    nodes: [{ id, kind: "message", role: "user" as const, payload: "on" }],
  });
  await sessions.commit(fence.session, {
    turn: "t2",
    fence,
    claims: [work.ref],
    ...draft("n2"),
  });
  const forked = await leases.waitForLease("fork", {
    owner: "bob",
    incarnation: "2",
  });
  await sessions.commit(forked.session, {
    turn: "f1",
    fence: forked,
    ...draft("f1"),
  });
  const idsOf = async (session: string): Promise<readonly string[]> =>
    (await sessions.path(session)).nodes.map(({ id }) => id);
  expect(await idsOf("chat")).toEqual(["n1", "n2"]);
  expect(await idsOf("fork")).toEqual(["n1", "f1"]);
  expect(await effects.execute(turn, "ask", asked, () => 43)).toBe(42);
  const awaited = awaitEvents(holdfast.database);
  await awaited.resolve(token, { agreed: true });
  expect(await schedules(holdfast.database).get("mine", "daily")).toMatchObject({
    nextAt: Date.UTC(2026, 10, 18, 9),
  });
}

/** An instant that came due after the move fires once, in Postgres. */
async function schedulesFire(target: Holdfast): Promise<void> {
  const { triggers, runs } = target;
  await until(async () => (await runs.list({ function: "nightly" })).items.length > 0);
  const { items } = await runs.list({ function: "nightly" });
  expect(items.map(({ createdAt }) => createdAt > noon + day)).toEqual([true]);
  const fired: number[] = [];
  const scheduler = triggers.run({
    onFired: ({ instant }) => fired.push(instant),
  });
  await until(() => fired.length > 0);
  await scheduler.close();
  expect(fired).toEqual([noon + 3 * day]);
}

test("values that went through a payload codec need it after the move as before", () =>
  withBoth(async (folder, place) => {
    const word = signal<string>("word");
    const echo = workflow(
      "echo",
      async (ctx, text: string) => `${text} ${await ctx.receive(word)}`,
    );
    const payload = keyedCodec("one");
    const source = await holdfastOn(await folder.open(), { payload }, () => undefined);
    await source.start(echo, "secret", { id: "echo-1" });
    await source.close();
    await move(folder, place);
    const forgetful = await holdfastOn(await place.open(), {}, () => undefined);
    await expect(forgetful.start(echo, "in the clear")).rejects.toMatchObject({
      code: "PAYLOAD_CODEC_MISSING",
    });
    await forgetful.close();
    const target = await holdfastOn(await place.open(), { payload }, () => undefined);
    await target.work([echo]);
    const run = target.get(echo, "echo-1");
    await run.signal(word, "kept");
    expect(await run.result()).toBe("secret kept");
    await target.close();
  }));
