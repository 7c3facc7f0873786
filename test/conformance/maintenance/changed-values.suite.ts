import { describe, expect, test } from "vitest";
import { awaitEvents, effects } from "../../../src/effects.ts";
import { executions, parseExecutionId } from "../../../src/executions.ts";
import { type PayloadCodec, type Database, row, run, type Damaged } from "../../../src/kernel.ts";
import type { HoldfastError } from "../../../src/model/errors.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { processes } from "../../../src/processes.ts";
import { leases, queue, sessions } from "../../../src/sessions.ts";
import { spelled, type Statement } from "../../../src/sql/statement.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { fireNow } from "../../../src/stores/schedule/runs/start.ts";
import { triggers } from "../../../src/triggers.ts";
import { keyedCodec } from "../../fixtures/keyed-codec.ts";
import { rejection, withPlace, type Backend } from "../backend.ts";
import { writeEveryRow } from "../every-row.ts";

/**
 * Every value that is handed to somebody, changed in its column to another
 * sound one, is refused there by table and key, and named by lists.
 */
export function changedValuesSuite(backend: Backend): void {
  describe("a value that was changed on the disk", () => {
    test.each([
      ["in the clear", undefined],
      ["encrypted", keyedCodec("one")],
    ] as const)(
      "is refused by every read that would hand it on, and restored is read: %s",
      (_, codec) =>
        withValues(backend, codec, codec, async (database, values) => {
          for (const value of values) {
            expect(await outcomes(value)).toEqual(allRead(value));
            const restore = await change(database, value, codec);
            expect(await outcomes(value)).toEqual(allRefused(value));
            await restore();
            expect(await outcomes(value)).toEqual(allRead(value));
          }
        }),
    );

    test("is told from one that was written in the clear before the database got its codec", () =>
      withValues(backend, undefined, keyedCodec("one", "clear"), async (database, values) => {
        // What is given again gets a hash of the codec, and is another request.
        for (const { repeats: _, ...value } of values) {
          expect(await outcomes(value)).toEqual(allRead(value));
          const restore = await change(database, value, undefined);
          expect(await outcomes(value)).toEqual(allRefused(value));
          await restore();
        }
      }));

    test("is not taken as received", () =>
      withValues(backend, undefined, undefined, async (database, values) => {
        const log = executions(database);
        const signal = values.find(({ name }) => name === "a signal");
        if (signal === undefined) throw new Error("There is no signal.");
        await change(database, signal, undefined);
        const { version } = await log.lastEvent("order");
        expect(await rejection(log.receive("order", "go", version + 1))).toMatchObject({
          code: "CORRUPT_ROW",
          details: { table: signal.table },
        });
        expect((await log.lastEvent("order")).version).toBe(version);
      }));

    test("leaves nothing claimed, and no function of an effect is run instead", () =>
      withValues(backend, undefined, undefined, async (database, values) => {
        const inbox = queue(database);
        const item = values.find(({ name }) => name === "an item of a queue");
        const effect = values.find(({ name }) => name === "the outcome of an effect");
        if (item === undefined || effect === undefined) throw new Error("They are missing.");
        const lease = await leases(database).waitForLease("inbox", {
          owner: "ada",
          incarnation: "1",
        });
        const restore = await change(database, item, undefined);
        expect(await rejection(inbox.claimTurn(lease))).toMatchObject({
          code: "CORRUPT_ROW",
          details: { table: "holdfast_queue_item" },
        });
        await restore();
        expect((await inbox.claimTurn(lease))?.batches).toMatchObject([
          { items: [{ payload: "hello" }] },
        ]);
        await change(database, effect, undefined);
        let calls = 0;
        const again = effects(database).execute(turn, "ask", asked, () => {
          calls += 1;
          return { answer: 3 };
        });
        expect(await rejection(again)).toMatchObject({ code: "CORRUPT_ROW" });
        expect(calls).toBe(0);
      }));
  });
}

const turn = { kind: "turn", session: "chat", id: "t1" } as const;
const asked = { kind: "llm", input: { prompt: "a" } };

/** A value in its column, another text for that, and who would be handed it. */
interface Delivered {
  readonly name: string;
  readonly table: string;
  readonly column: string;
  /** Finds its one row. */
  readonly where: string;
  readonly instead: unknown;
  readonly reads: readonly (() => Promise<unknown>)[];
  /** Calls that give again what was asked for, and are answered with the value. */
  readonly repeats?: readonly (() => Promise<unknown>)[];
  /** Lists that name the row and go on. */
  readonly lists?: readonly (() => Promise<{ readonly damaged: readonly Damaged[] }>)[];
  /** Of lists, when they name a row that refers to this one. */
  readonly listedIn?: string;
}

async function withValues(
  backend: Backend,
  writtenWith: PayloadCodec | undefined,
  readWith: PayloadCodec | undefined,
  body: (database: Database, values: readonly Delivered[]) => Promise<void>,
): Promise<void> {
  await withPlace(backend, async (place) => {
    const clock = manualClock(1_000_000);
    const database = await place.open({ clock });
    const written = { clock, ...(writtenWith && { payload: writtenWith }) };
    await writeEveryRow(database, clock, writtenWith);
    const made = processes(database, written);
    await made.register({ id: "made", kind: "tool", input: 1 });
    await made.setExternalRef("made", { backend: "ci", id: "7" });
    await made.complete("made", { kind: "completed", value: "done" });
    await sessions(database, written).create("inbox");
    await queue(database, written).enqueue("inbox", { items: [{ kind: "k", payload: "hello" }] });
    const context = { clock, ...(readWith && { payload: readWith }) };
    try {
      await body(database, [
        ...(await ofExecutions(database, context)),
        ...ofProcesses(database, context),
        ...ofEffects(database, context),
        ...ofSessions(database, context),
        ...ofTriggers(database, context),
      ]);
    } finally {
      // The others that share the place write it too.
      const forget = said("DELETE FROM holdfast_owner WHERE host = 'elsewhere'");
      await database.write("forget", () => run(forget));
    }
  });
}

type Context = Parameters<typeof executions>[1];

function keyOf(id: string): string {
  return `(SELECT key FROM holdfast_execution WHERE id = '${id}')`;
}

async function ofExecutions(database: Database, context: Context): Promise<readonly Delivered[]> {
  const log = executions(database, context);
  const child = (await log.tree("order")).items[1]?.id ?? "";
  const event = { table: "holdfast_execution_event", column: "payload" };
  const response = "holdfast_execution_response";
  return [
    {
      name: "the input of a run",
      ...event,
      where: `version = 0 AND execution = ${keyOf("order")}`,
      instead: { cents: 501 },
      reads: [() => log.created("order"), () => log.event("order", 0), () => log.load("order")],
      lists: [() => log.events("order")],
    },
    {
      name: "the result of a child",
      ...event,
      where: `kind = 'finished' AND execution = ${keyOf(child)}`,
      instead: { kind: "completed", value: "unpaid" },
      reads: [
        () => log.result(child),
        () => log.waitForResult(child),
        () => log.lastEvent(child),
        () => log.load("order"),
        () => log.waitForResponses("order", 0),
      ],
      lists: [() => log.responses("order")],
      listedIn: response,
    },
    {
      name: "a signal",
      table: response,
      column: "payload",
      where: `kind = 'signal' AND execution = ${keyOf("order")}`,
      instead: { by: "eve" },
      reads: [() => log.load("order"), () => log.waitForResponses("order", 0)],
      lists: [() => log.responses("order")],
    },
  ];
}

function ofProcesses(database: Database, context: Context): readonly Delivered[] {
  const store = processes(database, context);
  const event = "holdfast_process_event";
  const ofMade = "process = (SELECT key FROM holdfast_process WHERE id = 'made')";
  return [
    {
      name: "the result of the run of a process",
      table: "holdfast_execution_event",
      column: "payload",
      where: `kind = 'finished' AND execution = ${keyOf("deploy")}`,
      instead: { kind: "completed", value: { url: "/v8" } },
      reads: [() => store.output("deploy"), () => store.waitForEnd("deploy")],
    },
    {
      name: "the input of a process",
      table: "holdfast_process",
      column: "input",
      where: "id = 'build'",
      instead: { branch: "fork" },
      reads: [() => store.get("build")],
    },
    {
      name: "the payload of an event",
      table: event,
      column: "payload",
      where: "type = 'progress'",
      instead: { percent: 6 },
      reads: [() => store.waitForEvent("build", { after: 0, type: "progress" })],
      lists: [() => store.events("build"), () => store.recent("build", 9)],
    },
    {
      name: "the reference to outside work",
      table: event,
      column: "payload",
      where: `${ofMade} AND sequence = 1`,
      instead: { backend: "ci", id: "8" },
      reads: [() => store.get("made")],
      lists: [() => store.events("made")],
    },
    {
      name: "the output of a process",
      table: event,
      column: "output",
      where: `${ofMade} AND output IS NOT NULL`,
      instead: { kind: "completed", value: "undone" },
      reads: [() => store.output("made"), () => store.waitForEnd("made")],
    },
  ];
}

function ofEffects(database: Database, context: Context): readonly Delivered[] {
  const outside = effects(database, context);
  const awaited = awaitEvents(database, context);
  const outcome = { table: "holdfast_effect", column: "outcome" };
  const answer = { table: "holdfast_await_event", column: "payload" };
  return [
    {
      name: "the outcome of an effect",
      ...outcome,
      where: "replay_key = 'ask'",
      instead: { answer: 2 },
      reads: [() => outside.get(turn, "ask")],
      repeats: [
        () => outside.claim(turn, "ask", asked),
        () => outside.execute(turn, "ask", asked, () => 1),
      ],
    },
    {
      name: "the failure of an effect",
      ...outcome,
      where: "replay_key = 'fail'",
      instead: { $holdfast: "error", value: { name: "TypeError", message: "yes" } },
      reads: [() => outside.get(turn, "fail")],
    },
    {
      name: "the envelope of an effect",
      table: "holdfast_effect",
      column: "envelope",
      where: "replay_key = 'ask'",
      instead: { input: { prompt: "c" }, kind: "llm" },
      reads: [() => outside.get(turn, "ask")],
    },
    {
      name: "an answer from outside",
      ...answer,
      where: "name = 'yes'",
      instead: { agreed: false },
      reads: [() => awaited.wait(turn, "yes"), () => awaited.get(turn, "yes")],
    },
    {
      name: "a refusal from outside",
      ...answer,
      where: "name = 'no'",
      instead: { $holdfast: "error", value: { name: "RangeError", message: "yes" } },
      reads: [() => awaited.wait(turn, "no"), () => awaited.get(turn, "no")],
    },
  ];
}

function ofSessions(database: Database, context: Context): readonly Delivered[] {
  const store = sessions(database, context);
  const inbox = queue(database, context);
  return [
    {
      name: "a node of a session",
      table: "holdfast_session_node",
      column: "payload",
      where: "id = 'n3'",
      instead: "goodbye?",
      reads: [
        () => store.node("chat", "n3"),
        () => store.path("chat"),
        () => store.load("chat"),
        () => store.path("fork"),
      ],
      lists: [() => store.graph("chat")],
    },
    {
      name: "a frame of a session",
      table: "holdfast_session_frame",
      column: "payload",
      where: "session = (SELECT key FROM holdfast_session WHERE id = 'chat')",
      instead: { reason: "end", data: { a: 1 } },
      reads: [() => store.head("chat"), () => store.load("chat")],
    },
    {
      name: "an item of a queue",
      table: "holdfast_queue_item",
      column: "payload",
      where: "kind = 'k'",
      instead: "goodbye",
      reads: [],
      lists: [() => inbox.list("inbox", { state: "all" })],
    },
  ];
}

function ofTriggers(database: Database, context: Context): readonly Delivered[] {
  const rules = triggers(database, context);
  const source = { type: "webhook", key: "github" };
  const runs = executionContext(database, context);
  let fired = 0;
  let recorded = 0;
  return [
    {
      name: "the payload of an occurrence",
      table: "holdfast_trigger_occurrence",
      column: "payload",
      where: "id = '1'",
      instead: { branch: "fork" },
      reads: [() => rules.occurrence("1")],
      repeats: [() => rules.record({ key: "1", source, payload: { branch: "main" } })],
      lists: [() => rules.occurrences()],
    },
    {
      name: "the content of a subscription",
      table: "holdfast_trigger_subscription",
      column: "content",
      where: "name = 'push'",
      instead: {
        label: null,
        target: { kind: "other", label: null, definition: null },
        payloadSchema: { type: "object", required: ["branch"] },
        arguments: null,
        grant: null,
      },
      reads: [() => rules.get({ key: "push", registrant: "chat" })],
      lists: [
        () => rules.list(),
        () => {
          recorded += 1;
          return rules.record({ key: `new ${recorded}`, source, payload: { branch: "main" } });
        },
      ],
    },
    {
      name: "the input of a schedule",
      table: "holdfast_schedule_function",
      column: "input",
      where: "name = 'nightly'",
      instead: { days: 2 },
      reads: [
        () => {
          fired += 1;
          const id = parseExecutionId(`nightly@fire:again-${fired}`);
          return database.write(fireNow(runs), { name: "nightly", run: id, at: 1_000_000 });
        },
      ],
    },
  ];
}

/** What comes of each read and list: that it was read, or where the damage is said to be. */
async function outcomes({ name, reads, repeats = [], lists = [] }: Delivered): Promise<unknown> {
  const found: string[] = [];
  for (const read of [...reads, ...repeats]) found.push(await read().then(() => "read", refusal));
  for (const read of lists) {
    const { damaged } = await read();
    found.push(damaged.length === 0 ? "read" : damaged.map(({ table }) => table).join());
  }
  return [name, found];
}

function refusal(error: unknown): string {
  const { code, details, message } = error as HoldfastError;
  const { table, key } = details as { readonly table?: string; readonly key?: unknown };
  return code === "CORRUPT_ROW" && key !== undefined ? `${code} in ${table}` : message;
}

function allRead({ name, reads, repeats = [], lists = [] }: Delivered): unknown {
  return [name, [...reads, ...repeats, ...lists].map(() => "read")];
}

function allRefused(value: Delivered): unknown {
  const { name, table, reads, repeats = [], lists = [], listedIn = table } = value;
  const refused = [...reads, ...repeats].map(() => `CORRUPT_ROW in ${table}`);
  return [name, [...refused, ...lists.map(() => listedIn)]];
}

/** Answers what undoes it. */
async function change(
  database: Database,
  { table, column, where, instead }: Delivered,
  codec: PayloadCodec | undefined,
): Promise<() => Promise<unknown>> {
  const text = JSON.stringify(instead);
  const set = (value: string): Promise<number> =>
    database.write("change", () =>
      run(said(`UPDATE ${table} SET ${column} = '${value.replaceAll("'", "''")}' WHERE ${where}`)),
    );
  const found = await database.read("was", () =>
    row<{ readonly was: string }>(said(`SELECT ${column} AS was FROM ${table} WHERE ${where}`)),
  );
  if (found === undefined) throw new Error(`There is no row of ${table} where ${where}.`);
  expect(await set(codec?.encode(text) ?? text)).toBe(1);
  return () => set(found.was);
}

function said(text: string): Statement {
  return spelled({ sqlite: text, postgres: text });
}
