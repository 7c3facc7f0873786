import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../../src/model/errors.ts";
import { rows, run, type Tx, sql, type Database } from "../../../src/kernel.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { until } from "../lease/leased-sessions.ts";
import { ask, Hand, held, inEffects, never, refused, storedEffects, turn } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";

/** Leaves a mark in the database: the name of session "s". */
function* mark(name: string): Tx<string> {
  yield* run(sql`
    UPDATE holdfast_session SET name = ${name} WHERE id = 's' AND deleted_at IS NULL`);
  return `did ${name}`;
}

async function marked(database: Database): Promise<unknown> {
  const found = await database.read("marked", () =>
    rows<{ readonly name: string | null }>(sql`SELECT name FROM holdfast_session WHERE id = 's'`),
  );
  return found[0]?.name;
}

function* neverBody(): Tx<never> {
  yield* mark("nobody");
  return never();
}

export function effectTransactSuite(backend: Backend): void {
  describe("an effect in this very database", () => {
    transactTests(inEffects(backend));
  });
}

function transactTests(fixture: InFixture): void {
  test(
    "is done and recorded in one transaction, once",
    fixture(async ({ effects, database, faults }) => {
      const { writes } = faults;
      const body = () => mark("a");
      expect(await effects.transact(turn, "k", ask, body)).toBe("did a");
      expect(faults.writes).toBe(writes + 1);
      expect(await effects.transact(turn, "k", ask, neverBody)).toBe("did a");
      expect(await effects.replay(turn, "k", ask)).toBe("did a");
      expect(faults.writes).toBe(writes + 1);
      expect(await marked(database)).toBe("a");
      expect(await storedEffects(database)).toMatchObject([
        { status: "completed", fence: 1, settled_at: 1_000 },
      ]);
    }),
  );

  test(
    "leaves nothing but the record of what it threw, and throws that again",
    fixture(async ({ effects, database }) => {
      const body = function* (): Tx<never> {
        yield* mark("a");
        throw new HoldfastError("PROCESS_NOT_FOUND", "There is none.", {
          id: "p",
        });
      };
      for (const own of [body, neverBody]) {
        const error = await rejection(effects.transact(turn, "k", ask, own));
        expect(error).toBeInstanceOf(HoldfastError);
        expect(error).toMatchObject({
          code: "PROCESS_NOT_FOUND",
          message: "There is none.",
          details: { id: "p" },
          retryable: false,
        });
      }
      expect(await marked(database)).toBeNull();
    }),
  );

  test(
    "records an error of ours without the details that cannot be stored",
    fixture(async ({ effects }) => {
      const odd = new HoldfastError("PROCESS_NOT_FOUND", "There is none.", {
        call: () => 1,
      });
      const body = function* (): Tx<never> {
        yield* mark("a");
        throw odd;
      };
      for (const own of [body, neverBody])
        expect(await rejection(effects.transact(turn, "k", ask, own))).toMatchObject({
          code: "PROCESS_NOT_FOUND",
          details: {},
        });
    }),
  );

  test(
    "is left to the next call when its body is no generator function",
    fixture(async (at) => {
      const { effects } = at;
      const slips: readonly unknown[] = [
        () => 1,
        () => undefined,
        async () => 1,
        async function* () {
          yield 1;
        },
      ];
      for (const slip of slips)
        expect(
          await refused(at, () => effects.transact(turn, "k", ask, slip as () => Tx<unknown>)),
        ).toMatchObject({ code: "OPERATION_INVALID" });
      const body = () => mark("a");
      expect(await effects.transact(turn, "k", ask, body)).toBe("did a");
    }),
  );

  test(
    "records that what it returned is too large, and leaves nothing else",
    fixture(async ({ effects, database }) => {
      const large = function* (): Tx<string> {
        yield* mark("a");
        return "x".repeat(3 * 1024 * 1024);
      };
      for (const body of [large, () => mark("b")])
        expect(await rejection(effects.transact<unknown>(turn, "k", ask, body))).toMatchObject({
          code: "VALUE_TOO_LARGE",
          details: { limit: 2 * 1024 * 1024 },
        });
      expect(await marked(database)).toBeNull();
    }),
  );

  test(
    "leaves nothing at all when the store failed, or what it returned cannot be stored",
    fixture(async (at) => {
      const { effects, database } = at;
      const odd = function* (): Tx<unknown> {
        yield* mark("a");
        return () => 1;
      };
      expect(await refused(at, () => effects.transact(turn, "k", ask, odd))).toMatchObject({
        code: "EFFECT_RESULT_UNSTORABLE",
      });
      const broken = function* (): Tx<void> {
        yield* mark("a");
        yield* run(sql`
          INSERT INTO holdfast_session (id, generation, created_at, revision, node_count, user_message_count, active_at)
          VALUES ('s', 1, 0, 0, 0, 0, 0)`);
      };
      expect(await refused(at, () => effects.transact(turn, "k", ask, broken))).toMatchObject({
        code: "CONSTRAINT_VIOLATED",
      });
      expect(await marked(database)).toBeNull();
      expect(await effects.transact(turn, "k", ask, () => mark("b"))).toBe("did b");
    }),
  );

  test(
    "may be repeated when its answer is lost",
    fixture(async ({ effects, database, faults }) => {
      faults.losesAnswer = true;
      expect(await rejection(effects.transact(turn, "k", ask, () => mark("a")))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      expect(await effects.transact(turn, "k", ask, neverBody)).toBe("did a");
      expect(await marked(database)).toBe("a");
    }),
  );

  test(
    "waits for somebody who runs the same, and takes over from one who died or gave up",
    fixture(async (at) => {
      const { effects, database, faults } = at;
      const hand = new Hand();
      const own = effects.execute(turn, "k", ask, hand.run);
      await until(() => hand.calls === 1);
      const waiting = effects.transact(turn, "k", ask, neverBody);
      await until(() => faults.listeners === 1);
      hand.end("theirs");
      expect(await waiting).toBe("theirs");
      await own;
      const claim = await held(at, "given back");
      await effects.release(claim);
      const body = () => mark("a");
      expect(await effects.transact(turn, "given back", ask, body)).toBe("did a");
      await held(at, "dead");
      faults.die(database.owner);
      expect(await effects.transact(turn, "dead", ask, () => mark("b"))).toBe("did b");
      expect(await marked(database)).toBe("b");
    }),
  );

  test(
    "is not done in strict replay, with another envelope, or without a session",
    fixture(async (at) => {
      const { effects, effectsIn, database } = at;
      const strict = effectsIn({ replayOnly: true });
      expect(await refused(at, () => strict.transact(turn, "k", ask, neverBody))).toMatchObject({
        code: "EFFECT_NOT_RECORDED",
      });
      await effects.transact(turn, "k", ask, () => mark("a"));
      const other = { kind: "llm", input: { prompt: "other" } };
      expect(await refused(at, () => effects.transact(turn, "k", other, neverBody))).toMatchObject({
        code: "EFFECT_CONFLICT",
        details: { path: "$.input.prompt" },
      });
      const nobody = { kind: "turn", session: "nobody", id: "t" };
      expect(
        await refused(at, () => effects.transact(nobody, "k", ask, () => mark("b"))),
      ).toMatchObject({ code: "SESSION_NOT_FOUND" });
      expect(await marked(database)).toBe("a");
      expect(
        await refused(at, () => effects.transact(turn, "x", ask, 5 as unknown as () => Tx<void>)),
      ).toMatchObject({ code: "OPTION_INVALID" });
    }),
  );
}
