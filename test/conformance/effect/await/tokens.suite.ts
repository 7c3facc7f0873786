import { describe, expect, test } from "vitest";
import { rows, run, sql } from "../../../../src/kernel.ts";
import { awaitEvents } from "../../../../src/effects.ts";
import { inAwaitFixture, storedAwaits } from "./fixture.ts";
import type { InFixture } from "./fixture.ts";
import { rejection } from "../../backend.ts";
import type { Backend } from "../../backend.ts";

export function awaitTokensSuite(backend: Backend): void {
  const fixture = inAwaitFixture(backend);
  describe("the token of an await-event", () => {
    tamperTests(fixture);
    secretTests(fixture);
  });
  describe("what enters an await-event", () => {
    borderTests(fixture);
  });
}

function tamperTests(fixture: InFixture): void {
  test(
    "[A82] is refused when it was tampered with, made elsewhere or never given out, always in the same words",
    fixture(async ({ database, events, scope }) => {
      const { id, token } = await events.open(scope, "k");
      const other = await events.open(scope, "other");
      const signature = token.slice(-64);
      const last = token.endsWith("0") ? "1" : "0";
      const before = await storedAwaits(database);
      const refusals = await Promise.all(
        [
          `${token.slice(0, -1)}${last}`,
          `${other.id}.${signature}`,
          `await_${"0".repeat(32)}.${signature}`,
          `${id}.${"0".repeat(64)}`,
          id,
          `${token} `,
          token.toUpperCase(),
          "",
          "\0",
          undefined as unknown as string,
          null as unknown as string,
          7 as unknown as string,
          { toString: () => token } as unknown as string,
        ].map((wrong) => rejection(events.resolve(wrong, 1))),
      );
      const [first] = refusals;
      for (const refusal of refusals)
        expect({
          code: refusal.code,
          message: refusal.message,
          details: refusal.details,
        }).toEqual({
          code: "AWAIT_TOKEN_INVALID",
          message: first?.message,
          details: {},
        });
      expect(first?.message).not.toContain(id);
      const { next } = await events.list(null, { limit: 1 });
      for (const after of ["a", next ?? ""])
        expect(await rejection(events.list(null, { after, state: "open" }))).toMatchObject({
          code: "CURSOR_INVALID",
        });
      expect(await storedAwaits(database)).toEqual(before);
      expect(await events.resolve(token, 1)).toEqual({ kind: "accepted" });
    }),
  );

  test(
    "[A82] is refused where no token was ever given out",
    fixture(async ({ events }) => {
      const token = `await_${"0".repeat(32)}.${"0".repeat(64)}`;
      expect(await rejection(events.resolve(token, 1))).toMatchObject({
        code: "AWAIT_TOKEN_INVALID",
      });
    }),
  );

  test(
    "[A82] is refused once its session is gone",
    fixture(async ({ database, events, store, session, scope }) => {
      const { token } = await events.open(scope, "k");
      await database.write("deleted", () =>
        run(sql`UPDATE holdfast_session SET deleted_at = 1 WHERE id = ${session}`),
      );
      const before = await storedAwaits(database);
      expect(await rejection(events.resolve(token, 1))).toMatchObject({
        code: "AWAIT_TOKEN_INVALID",
      });
      expect(await storedAwaits(database)).toEqual(before);
      await store.delete(session);
      expect(await rejection(events.resolve(token, 1))).toMatchObject({
        code: "AWAIT_TOKEN_INVALID",
      });
    }),
  );

  test(
    "is nowhere in the database, nor in what is read and listed",
    fixture(async ({ database, events, session, scope }) => {
      const { token } = await events.open(scope, "k");
      await events.resolve(token, 1);
      const shown = JSON.stringify([
        await events.get(scope, "k"),
        await events.list(session),
        await storedAwaits(database),
      ]);
      expect(shown).not.toContain(token.slice(-64));
    }),
  );
}

function secretTests(fixture: InFixture): void {
  test(
    "is all that a transaction which opens one is told: not what signs it",
    fixture(async ({ database, events, scope }) => {
      await database.write("unsigned", () => run(sql`DELETE FROM holdfast_await_secret`));
      const prepared = events.open.prepare(scope, "k");
      const opened = await database.write("open", () => prepared());
      expect(Object.keys(opened).toSorted()).toEqual(["dueAt", "existed", "id", "token"]);
      const [kept] = await database.read("secret", () =>
        rows<{ readonly secret: string }>(sql`SELECT secret FROM holdfast_await_secret`),
      );
      if (kept === undefined) throw new Error("It was just made.");
      expect(Object.values(opened)).not.toContain(kept.secret);
      expect(await events.resolve(opened.token, 1)).toEqual({
        kind: "accepted",
      });
    }),
  );

  test(
    "is signed with a secret of the database that is made once, also when many open at once",
    fixture(async ({ database, events, scope }) => {
      const opened = await Promise.all(["a", "b", "c", "d"].map((key) => events.open(scope, key)));
      for (const [index, { token }] of opened.entries())
        expect(await events.resolve(token, index)).toEqual({
          kind: "accepted",
        });
      const secrets = await database.read("secrets", () =>
        rows<{ secret: string }>(sql`SELECT secret FROM holdfast_await_secret`),
      );
      expect(secrets).toEqual([{ secret: expect.stringMatching(/^"[0-9a-f]{64}"$/) }]);
    }),
  );

  test(
    "is signed with a secret that a payload codec keeps, whatever the limits of values are",
    fixture(async ({ database, clock, scope }) => {
      const turned = (text: string): string => text.split("").toReversed().join("");
      const payload = {
        name: "turned",
        encode: turned,
        decode: turned,
        hash: "sha256",
      } as const;
      const small = { valueLimits: { charactersMax: 20 } };
      const events = awaitEvents(database, { clock, payload, ...small });
      const { token } = await events.open(scope, "k");
      expect(await rejection(events.resolve(token, "x".repeat(30)))).toEqual(
        expect.objectContaining({ code: "VALUE_TOO_LARGE" }),
      );
      expect(await events.fail(token, new Error("e".repeat(30)))).toEqual({
        kind: "accepted",
      });
      expect(await events.wait(scope, "k")).toMatchObject({
        error: { message: "e".repeat(30) },
      });
    }),
  );

  test(
    "cannot be made or judged when that secret is damaged, which is told",
    fixture(async ({ database, events, scope }) => {
      const { token } = await events.open(scope, "k");
      for (const damage of ["{", '"short"', "7"]) {
        await database.write("damage", () =>
          run(sql`UPDATE holdfast_await_secret SET secret = ${damage}`),
        );
        for (const attempt of [() => events.open(scope, "l"), () => events.resolve(token, 1)])
          expect(await rejection(attempt())).toMatchObject({
            code: "CORRUPT_ROW",
            details: { table: "holdfast_await_secret", key: 1 },
          });
      }
    }),
  );
}

function borderTests(fixture: InFixture): void {
  test(
    "is refused by name when scope or key are none",
    fixture(async ({ database, events, scope }) => {
      const before = await storedAwaits(database);
      const wrong: readonly (readonly [unknown, unknown, string])[] = [
        [undefined, "k", "scope"],
        [null, "k", "scope"],
        ["turn", "k", "scope"],
        [{ ...scope, kind: " " }, "k", "scope.kind"],
        [{ ...scope, kind: undefined }, "k", "scope.kind"],
        [{ ...scope, kind: "x".repeat(65) }, "k", "scope.kind"],
        [{ ...scope, id: "" }, "k", "scope.id"],
        [{ ...scope, id: 5 }, "k", "scope.id"],
        [{ ...scope, id: "a\0" }, "k", "scope.id"],
        [{ ...scope, session: 5 }, "k", "scope.session"],
        [{ ...scope, session: null }, "k", "scope.session"],
        [{ ...scope, session: {} }, "k", "scope.session"],
        [scope, "", "key"],
        [scope, "\t ", "key"],
        [scope, undefined, "key"],
        [scope, "\ud800", "key"],
        [scope, "x".repeat(513), "key"],
      ];
      for (const [where, key, path] of wrong) {
        type Place = Parameters<typeof events.wait>;
        const place = [where, key] as unknown as Place;
        for (const attempt of [
          () => events.open(...place),
          () => events.wait(...place),
          () => events.get(...place),
          () => events.cancel(...place),
          () => events.revoke(...place),
        ])
          expect(await rejection(attempt())).toMatchObject({
            code: path === "key" ? "EFFECT_INVALID" : "EFFECT_SCOPE_INVALID",
            details: { path },
          });
      }
      expect(await storedAwaits(database)).toEqual(before);
    }),
  );

  test(
    "is refused when its session is unknown, deleted or no session at all",
    fixture(async ({ events, store, session, scope }) => {
      const unknown = { ...scope, session: "nobody" };
      expect(await rejection(events.open(unknown, "k"))).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
      expect(await rejection(events.open({ ...scope, session: " " }, "k"))).toMatchObject({
        code: "ID_MALFORMED",
      });
      for (const wrong of [undefined, 5, {}])
        for (const attempt of [
          () => events.list(wrong as unknown as string),
          () => events.revokeAll(wrong as unknown as string),
        ])
          expect(await rejection(attempt())).toMatchObject({
            code: "EFFECT_SCOPE_INVALID",
          });
      await store.delete(session);
      const old = { ...scope, session: { id: session, generation: 1 } };
      for (const attempt of [
        () => events.open(old, "k"),
        () => events.wait(old, "k"),
        () => events.get(old, "k"),
        () => events.cancel(old, "k"),
        () => events.list(old.session),
        () => events.revokeAll(old.session),
      ])
        expect(await rejection(attempt())).toMatchObject({
          code: "SESSION_DELETED",
        });
    }),
  );

  test(
    "is refused with the place of what cannot be stored, and leaves it open",
    fixture(async ({ database, events, scope }) => {
      const { token } = await events.open(scope, "k");
      const before = await storedAwaits(database);
      expect(await rejection(events.resolve(token, { a: [1, () => 2] }))).toMatchObject({
        code: "NOT_SERIALIZABLE",
        details: { path: "$.a[1]" },
      });
      for (const answerWithin of [-1, "soon", Number.NaN, null])
        expect(
          await rejection(events.open(scope, "l", { answerWithin: answerWithin as number })),
        ).toMatchObject({ code: "DURATION_INVALID" });
      for (const options of [{ limit: 0 }, { limit: 1.5 }, { state: "shut" as "open" }])
        expect(await rejection(events.list(null, options))).toMatchObject({
          code: "OPTION_INVALID",
        });
      expect(await storedAwaits(database)).toEqual(before);
    }),
  );

  test(
    "may be nothing at all, and stays nothing",
    fixture(async ({ events, scope }) => {
      const { token } = await events.open(scope, "k");
      expect(await events.resolve(token, undefined)).toEqual({
        kind: "accepted",
      });
      expect(await events.resolve(token, null)).toEqual({
        kind: "late",
        outcome: { kind: "resolved", value: undefined },
      });
    }),
  );

  test(
    "may be anything that was thrown, however strange",
    fixture(async ({ events, scope }) => {
      const hostile = new Proxy(
        {},
        {
          get() {
            throw new Error("never");
          },
        },
      );
      for (const [index, thrown] of [undefined, "text", { message: "plain" }, hostile].entries()) {
        const { token } = await events.open(scope, `${index}`);
        expect(await events.fail(token, thrown)).toEqual({ kind: "accepted" });
        expect(await events.wait(scope, `${index}`)).toMatchObject({
          kind: "failed",
          error: { name: "NonError" },
        });
      }
    }),
  );
}
