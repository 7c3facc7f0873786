import { describe, expect, test } from "vitest";
import type { PayloadCodec } from "../../../src/model/values/payload-codec.ts";
import type { Statement } from "../../../src/sql/statement.ts";
import { sql } from "../../../src/sql/statement.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { step } from "./execution-events.ts";
import { byAnn, dump, onExecutions, refusal, standing } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";
import { pastChecks } from "../past-checks.ts";

/** Does what only somebody with a database shell can. */
function edit({ database }: ExecutionFixture, statement: Statement): Promise<void> {
  return database.write("edit", () => pastChecks(database, statement));
}

const ofA = sql`execution = (SELECT key FROM holdfast_execution WHERE id = 'a')`;

const damages = [
  [
    "its state contradicts its columns",
    sql`UPDATE holdfast_execution SET state = 'locked' WHERE id = 'a'`,
    sql`UPDATE holdfast_execution SET state = 'pending' WHERE id = 'a'`,
    "CORRUPT_ROW",
    "holdfast_execution",
  ],
  [
    "an event is no JSON",
    sql`UPDATE holdfast_execution_event SET body = 'torn' WHERE kind = 'stepFinished'`,
    sql`UPDATE holdfast_execution_event SET body = '{"name":"s"}' WHERE kind = 'stepFinished'`,
    "CORRUPT_ROW",
    "holdfast_execution_event",
  ],
  [
    "its log does not begin with its creation",
    sql`UPDATE holdfast_execution_event SET kind = 'paused' WHERE version = 0 AND ${ofA}`,
    sql`UPDATE holdfast_execution_event SET kind = 'created' WHERE version = 0 AND ${ofA}`,
    "CORRUPT_ROW",
    "holdfast_execution_event",
  ],
  [
    "its metadata is damaged",
    sql`UPDATE holdfast_execution_event SET body = REPLACE(body, '"metadata":{}', '"metadata":5') WHERE ${ofA}`,
    sql`UPDATE holdfast_execution_event SET body = REPLACE(body, '"metadata":5', '"metadata":{}') WHERE ${ofA}`,
    "CORRUPT_ROW",
    "holdfast_execution_event",
  ],
  [
    "its list of begun steps is damaged",
    sql`UPDATE holdfast_execution_event SET body = REPLACE(body, '"metadata":{}', '"metadata":{},"begun":[5]') WHERE ${ofA}`,
    sql`UPDATE holdfast_execution_event SET body = REPLACE(body, ',"begun":[5]', '') WHERE ${ofA}`,
    "CORRUPT_ROW",
    "holdfast_execution_event",
  ],
  [
    "the value of a step cannot be read",
    sql`UPDATE holdfast_execution_event SET payload = 'torn' WHERE kind = 'stepFinished'`,
    sql`UPDATE holdfast_execution_event SET payload = '1' WHERE kind = 'stepFinished'`,
    "VALUE_MALFORMED",
    "holdfast_execution_event",
  ],
  [
    "the value of a signal cannot be read",
    sql`UPDATE holdfast_execution_response SET payload = 'torn'`,
    sql`UPDATE holdfast_execution_response SET payload = '1'`,
    "VALUE_MALFORMED",
    "holdfast_execution_event",
  ],
  [
    "a signal has another value than was sent",
    sql`UPDATE holdfast_execution_response SET payload = '2'`,
    sql`UPDATE holdfast_execution_response SET payload = '1'`,
    "CORRUPT_ROW",
    "holdfast_execution_event",
  ],
  [
    "an event is missing",
    sql`UPDATE holdfast_execution_event SET version = 9 WHERE version = 1 AND ${ofA}`,
    sql`UPDATE holdfast_execution_event SET version = 1 WHERE version = 9 AND ${ofA}`,
    "CORRUPT_ROW",
    "holdfast_execution_event",
  ],
  [
    "a signal is missing",
    sql`UPDATE holdfast_execution_response SET seq = 9 WHERE ${ofA}`,
    sql`UPDATE holdfast_execution_response SET seq = 1 WHERE ${ofA}`,
    "CORRUPT_ROW",
    "holdfast_execution_event",
  ],
] as const;

/** Stands for a cipher: what was sealed with another key cannot be opened. */
function sealing(key: string): PayloadCodec {
  return {
    name: "sealing",
    encode: (text) => `${key}:${text}`,
    decode(stored) {
      if (!stored.startsWith(`${key}:`)) throw new Error("Another key.");
      return stored.slice(key.length + 1);
    },
    hash: "sha256",
  };
}

export function executionDamageSuite(backend: Backend): void {
  describe("an execution that cannot be read", () => {
    test.each(damages.slice(1))(
      "is not locked while %s, and nothing is left behind; once repaired it is",
      (_, damage, repair, code) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          await store.create({ id: "a", function: "f" });
          await store.append("a", 1, [step("s")]);
          await store.signal("a", "go", 1);
          await edit(fixture, damage);
          for (let again = 0; again < 2; again += 1)
            expect(await refusal(fixture, () => store.lock("a", 2, byAnn))).toBe(code);
          await edit(fixture, repair);
          expect(await store.lock("a", 2, byAnn)).toMatchObject({
            nextVersion: 3,
          });
        })(),
    );

    test.each(damages.slice(1))(
      "is passed over and named while %s, and takes no place from the others",
      (_, damage, __, ___, table) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          await store.create({ id: "a", function: "f" });
          await store.append("a", 1, [step("s")]);
          await store.signal("a", "go", 1);
          await store.create({ id: "b", function: "f" });
          await edit(fixture, damage);
          const { locked, damaged } = await store.lockPending({
            ...byAnn,
            functions: [{ name: "f", concurrencyMax: 1 }],
            limit: 1,
          });
          expect(locked.map(({ id }) => id)).toEqual(["b"]);
          expect(damaged).toEqual([{ table, key: "a" }]);
          expect(await standing(fixture, "a")).toMatchObject({
            version: 1,
            pending: { kind: "pending" },
          });
        })(),
    );

    test(
      "does not keep those that were found with it from being locked, however many cannot be read",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const create = (id: string) => store.create({ id, function: "f", input: id });
        const torn = Array.from({ length: 60 }, (_, n) => `b${n + 10}`);
        await Promise.all(torn.map(create));
        clock.advance(1);
        for (const id of ["a", "c", "d"]) await create(id);
        await edit(
          fixture,
          sql`UPDATE holdfast_execution_event SET payload = 'torn' WHERE payload LIKE '"b%'`,
        );
        const lock = (limit: number) => store.lockPending({ ...byAnn, functions: ["f"], limit });
        const one = await lock(1);
        expect(one.locked.map(({ id }) => id)).toEqual(["a"]);
        expect(one.damaged.map(({ key }) => key)).toEqual(torn);
        const others = await lock(100);
        expect(others.locked.map(({ id }) => id)).toEqual(["c", "d"]);
        expect(others.damaged).toHaveLength(60);
        expect(await standing(fixture, "b10")).toMatchObject({
          version: 0,
          pending: { kind: "pending" },
        });
      }),
    );

    test(
      "is not locked by who has another key, and is by who has the right one",
      onExecutions(backend, async (fixture) => {
        const { database, clock } = fixture;
        const withKey = (key: string) => executions(database, { clock, payload: sealing(key) });
        for (const id of ["a", "b"]) await withKey("one").create({ id, function: "f", input: id });
        const lock = (key: string) =>
          withKey(key).lockPending({ ...byAnn, functions: ["f"], limit: 9 });
        const before = await dump(fixture);
        expect(await rejection(lock("other"))).toMatchObject({ code: "PAYLOAD_CODEC_WRONG" });
        expect(await dump(fixture)).toEqual(before);
        expect((await lock("one")).locked).toHaveLength(2);
      }),
    );

    test(
      "is not run with another input than it was given, which its hash tells",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        for (const id of ["a", "b"])
          await store.create({ id, function: "f", input: { cents: 500 } });
        await edit(
          fixture,
          sql`UPDATE holdfast_execution_event SET payload = '{"cents":501}' WHERE ${ofA}`,
        );
        const before = await dump(fixture);
        expect(await rejection(store.lock("a", 1, byAnn))).toMatchObject({
          code: "CORRUPT_ROW",
          details: { table: "holdfast_execution_event", key: "a" },
        });
        expect(await dump(fixture)).toEqual(before);
        expect(await store.lockPending({ ...byAnn, functions: ["f"], limit: 9 })).toMatchObject({
          locked: [{ id: "b", input: { cents: 500 } }],
          damaged: [{ table: "holdfast_execution_event", key: "a" }],
        });
      }),
    );

    test(
      "is not run with another input than it was continued with",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f", input: 1 });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [{ kind: "continued", input: 2 }], {
          fence: byAnn.holder,
        });
        await edit(
          fixture,
          sql`UPDATE holdfast_execution_event SET payload = '3' WHERE kind = 'continued'`,
        );
        expect(await rejection(store.lock("a", 3, byAnn))).toMatchObject({
          code: "CORRUPT_ROW",
        });
        await edit(
          fixture,
          sql`UPDATE holdfast_execution_event SET payload = '2' WHERE kind = 'continued'`,
        );
        const { input, created } = await store.lock("a", 3, byAnn);
        expect([input, created.input]).toEqual([2, 1]);
      }),
    );

    test(
      "is not taken for one because its input is larger than may be stored today",
      onExecutions(backend, async (fixture) => {
        const { store, database, clock } = fixture;
        const input = "x".repeat(100);
        await store.create({ id: "a", function: "f", input });
        const today = executions(database, {
          clock,
          valueLimits: { charactersMax: 10 },
        });
        expect((await today.lock("a", 1, byAnn)).input).toBe(input);
      }),
    );

    test(
      "is refused by every change of it while its columns contradict each other",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await edit(fixture, damages[0][1]);
        for (const call of [
          () => store.lock("a", 1, byAnn),
          () => store.pause("a"),
          () => store.cancel("a"),
          () => store.signal("a", "go", 1),
          () => store.finish("a", 1, { kind: "timedOut" }),
        ])
          expect(await refusal(fixture, call)).toBe("CORRUPT_ROW");
        await edit(fixture, damages[0][2]);
        await store.pause("a");
      }),
    );
  });
}
