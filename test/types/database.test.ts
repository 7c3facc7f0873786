import { expect, expectTypeOf, test } from "vitest";
import { operation, row, run } from "../../src/sql/operation.ts";
import type { Operation, Tx } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Database } from "../../src/sql/database.ts";

interface Deposit {
  readonly id: string;
  readonly cents: number;
}

const deposit = operation("deposit", {
  key: (input: Deposit) => input.id,
  *one({ id, cents }) {
    yield* run(sql`UPDATE account SET cents = ${cents} WHERE id = ${id}`);
    return yield* row<{ cents: number }>(sql`SELECT cents FROM account`);
  },
});
const rename = operation("rename", {
  key: (input: { readonly from: string }) => input.from,
  *one() {
    return true;
  },
});

/** A piece of one's own. */
function* clear() {
  return yield* run(sql`DELETE FROM account`);
}

test("a call resolves to what its operation or body returns", () => {
  const uses = (database: Database): void => {
    const written = database.write(deposit, { id: "ada", cents: 5 });
    const read = database.read(deposit, { id: "ada", cents: 5 });
    const arrow = database.write("count", () => run(sql`DELETE FROM account`));
    const body = database.read("body", function* () {
      const found = yield* row<{ id: string }>(sql`SELECT id FROM account`);
      return found?.id;
    });
    const nothing = database.write("nothing", function* () {
      yield* run(sql`DELETE FROM account`);
    });
    expectTypeOf(written).toEqualTypeOf<Promise<{ cents: number } | undefined>>();
    expectTypeOf(read).toEqualTypeOf<typeof written>();
    expectTypeOf(arrow).toEqualTypeOf<Promise<number>>();
    expectTypeOf(body).toEqualTypeOf<Promise<string | undefined>>();
    expectTypeOf(nothing).toEqualTypeOf<Promise<void>>();
  };
  expect(uses).toBeTypeOf("function");
});

test("generic code keeps the type of its operation, body and input", () => {
  function written<I, O>(database: Database, given: Operation<I, O>, input: I): Promise<O> {
    return database.write(given, input);
  }
  function ran<O>(database: Database, body: () => Tx<O>): Promise<O> {
    return database.write("ran", body);
  }
  const uses = (database: Database): void => {
    expectTypeOf(written(database, rename, { from: "a" })).toEqualTypeOf<Promise<boolean>>();
    expectTypeOf(ran(database, clear)).toEqualTypeOf<Promise<number>>();
  };
  expect(uses).toBeTypeOf("function");
});

test("an error in the input is reported at the input, not at the call", () => {
  const uses = (database: Database): unknown => [
    database.write(deposit, {
      id: "ada",
      cents: 5,
      // @ts-expect-error: there is no such property.
      cent: 5,
    }),
    database.write(deposit, {
      id: "ada",
      // @ts-expect-error: text is no number.
      cents: "5",
    }),
    database.read(
      deposit,
      // @ts-expect-error: `cents` is missing.
      { id: "ada" },
    ),
    database.write(
      deposit,
      { id: "ada", cents: 5 },
      // @ts-expect-error: it is called `timeout`.
      { timout: 5 },
    ),
    database.write(
      uses.length > 1 ? deposit : rename,
      // @ts-expect-error: it must do for both.
      { from: "ada" },
    ),
    // @ts-expect-error: the input is missing.
    database.write(deposit),
  ];
  expect(uses).toBeTypeOf("function");
});

test("an error in the body is reported at the body", () => {
  const uses = (database: Database): unknown => [
    database.write(
      "generator",
      // @ts-expect-error: a body may be run again, a generator may not.
      clear(),
    ),
    database.write(
      "async",
      // @ts-expect-error: a transaction cannot await.
      async () => 1,
    ),
    database.read(
      "plain",
      // @ts-expect-error: a body is a generator function.
      () => 1,
    ),
    database.write(
      "starless",
      // @ts-expect-error: `yield` without its star.
      function* () {
        yield clear();
      },
    ),
    database.write(
      // @ts-expect-error: neither an operation nor a name.
      5,
      () => run(sql`DELETE FROM account`),
    ),
  ];
  expect(uses).toBeTypeOf("function");
});
