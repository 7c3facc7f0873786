import { describe, expect, test } from "vitest";
import { artifacts, blobs, maintenance } from "../../src/blobs.ts";
import { awaitEvents, effects, processEffects } from "../../src/effects.ts";
import { executions } from "../../src/executions.ts";
import { processes } from "../../src/processes.ts";
import { attachments, leases, queue, sessions } from "../../src/sessions.ts";
import { schedules, triggers } from "../../src/triggers.ts";
import { rows } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Database } from "../../src/sql/database.ts";
import type { Processes } from "../../src/stores/process/processes.ts";
import type { Backend } from "./backend.ts";
import { backgroundCalls } from "./background-calls.ts";
import type { HeldWork } from "./background-calls.ts";
import { wrongParts } from "./background-parts.ts";
import type { Call } from "./border-calls.ts";
import { bare, flawOf, secret, takesObject, wrong, wrongOption } from "./border-flaws.ts";
import { onProcesses, stored } from "./process/fixture.ts";

export function backgroundBorderSuite(backend: Backend): void {
  describe("at the border of processes, effects, await-events and triggers", () => {
    test("every wrong argument is refused with a code, and changes nothing", async () => {
      const { flaws, before, after } = await atBorder(backend, async (refuses, calls) => {
        for (const call of calls)
          for (const [position, kind] of call.kinds.entries())
            for (const value of wrong[kind]) await refuses(call, position, value);
      });
      expect(flaws).toEqual([]);
      expect(after).toEqual(before);
    });

    test("every wrong option is refused with a code, and changes nothing", async () => {
      const { flaws, before, after } = await atBorder(backend, async (refuses, calls) => {
        for (const call of calls)
          for (const option of call.options ?? [])
            for (const value of wrongOption)
              if (value !== bare || !takesObject.includes(option)) {
                const last = call.args.length - 1;
                const options = { ...(call.args[last] as object) };
                await refuses(call, last, { ...options, [option]: value });
              }
      });
      expect(flaws).toEqual([]);
      expect(after).toEqual(before);
    });

    test("an option that does not exist is refused, and changes nothing", async () => {
      const { flaws, before, after } = await atBorder(backend, async (refuses, calls) => {
        for (const call of calls)
          if (call.options !== undefined) {
            const last = call.args.length - 1;
            const options = { ...(call.args[last] as object) };
            await refuses(call, last, { ...options, tiemout: "1s" });
          }
      });
      expect(flaws).toEqual([]);
      expect(after).toEqual(before);
    });

    test("every wrong part of what is given is refused with a code, and changes nothing", async () => {
      const { flaws, before, after } = await atBorder(backend, async (refuses, calls) => {
        for (const [name, position, parts] of wrongParts) {
          const call = calls.find((each) => each.name === name);
          if (call === undefined) throw new Error(`No call ${name}.`);
          for (const part of parts) {
            const whole = call.args[position];
            const given = Array.isArray(part) ? part : { ...(whole as object), ...part };
            await refuses(call, position, given);
          }
        }
      });
      expect(flaws).toEqual([]);
      expect(after).toEqual(before);
    });

    test(
      "a signal that has aborted stops what works in slices before the first",
      onProcesses(backend, async ({ store }) => {
        const reason = new Error("enough");
        const signal = AbortSignal.abort(reason);
        await expect(store.prune({ olderThan: 0 }, { signal })).rejects.toMatchObject({
          code: "ABORTED",
          cause: reason,
        });
      }),
    );

    test(
      "names the argument, and what it takes, of sessions and sources",
      onProcesses(backend, async ({ database, store }) => {
        const nothing = undefined as unknown as string;
        await expect(store.grant("p", nothing)).rejects.toMatchObject({
          details: { option: "scope" },
          message: "Expected scope to be a session, or { session, frame }; got undefined.",
        });
        await expect(store.grant("p", { session: nothing })).rejects.toMatchObject({
          details: { option: "session" },
          message: "Expected session to be an id, or an object with an id; got undefined.",
        });
        await expect(store.get("a\0b")).rejects.toMatchObject({
          code: "ID_MALFORMED",
          details: { reason: "alphabet" },
        });
        const source = { type: "webhook", value: { now: () => 1 } };
        await expect(triggers(database).record({ key: "k", source })).rejects.toMatchObject({
          code: "NOT_SERIALIZABLE",
          details: { path: "$.source.value.now" },
        });
      }),
    );

    test("facades refuse a database that nobody has opened, or that is still being opened", () => {
      for (const facade of [...facades, ...ofSessions])
        for (const value of [undefined, null, "app.db", {}, Promise.resolve()])
          expect(() => facade(value)).toThrow(
            expect.objectContaining({
              code: "OPTION_INVALID",
              details: { option: "database" },
            }),
          );
      expect(() => processes(Promise.resolve() as never)).toThrow(/Await it/);
    });

    test(
      "facades refuse surroundings that are none",
      onProcesses(backend, async ({ database }) => {
        for (const facade of facades)
          for (const value of [null, 5, secret, []])
            expect(() => facade(database, value)).toThrow(
              expect.objectContaining({ code: "OPTION_INVALID" }),
            );
        const strict = { replayonly: true } as object;
        for (const facade of [effects, processEffects])
          expect(() => facade(database, strict)).toThrow('Unknown option "replayonly".');
      }),
    );
  });
}

const facades = [
  processes,
  effects,
  processEffects,
  awaitEvents,
  triggers,
  schedules,
] as readonly ((...given: unknown[]) => unknown)[];

const ofSessions = [
  artifacts,
  attachments,
  blobs,
  executions,
  leases,
  maintenance,
  queue,
  sessions,
] as readonly ((...given: unknown[]) => unknown)[];

type Refuses = (call: Call, position: number, value: unknown) => Promise<void>;

/** Looks at the database after all calls, as the border of sessions does. */
async function atBorder(
  backend: Backend,
  body: (refuses: Refuses, calls: readonly Call[]) => Promise<void>,
): Promise<{
  readonly flaws: readonly string[];
  readonly before: unknown;
  readonly after: unknown;
}> {
  const flaws: string[] = [];
  let [before, after]: unknown[] = [];
  await onProcesses(backend, async ({ database, store }) => {
    await store.register({
      id: "p",
      kind: "tool",
      eventTypes: [{ name: "signal.go" }],
    });
    const held = await heldWork(database, store);
    before = await everything(database);
    await body(
      async (...given) => {
        const flaw = await flawOf(...given);
        if (flaw !== undefined) flaws.push(flaw);
      },
      backgroundCalls(database, held),
    );
    after = await everything(database);
  })();
  return { flaws, before, after };
}

async function heldWork(database: Database, store: Processes): Promise<HeldWork> {
  await store.register({ id: "held", kind: "tool" });
  const bob = { owner: "bob", incarnation: "1", process: null };
  const taken = await store.claim("held", bob, { lease: "1 day" });
  const scope = { kind: "turn", id: "held", session: "s" };
  const envelope = { kind: "ask", input: 1 };
  const claimed = await effects(database).claim(scope, "held", envelope);
  if (taken.kind !== "acquired" || claimed.kind !== "claimed")
    throw new Error("Nobody else is there.");
  return { lease: taken.lease, claim: claimed.claim };
}

async function everything(database: Database): Promise<unknown> {
  return [
    await stored(database),
    await database.read("rest", function* () {
      return [
        yield* rows(sql`SELECT * FROM holdfast_session ORDER BY key`),
        yield* rows(sql`SELECT * FROM holdfast_effect ORDER BY key`),
        yield* rows(sql`SELECT * FROM holdfast_await_event ORDER BY key`),
        yield* rows(sql`SELECT * FROM holdfast_schedule ORDER BY key`),
        yield* rows(sql`SELECT * FROM holdfast_trigger_subscription ORDER BY key`),
        yield* rows(sql`SELECT * FROM holdfast_trigger_occurrence ORDER BY key`),
      ];
    }),
  ];
}
