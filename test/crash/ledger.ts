import { integer, strict, row, rows, run, type Tx, sql } from "../../src/kernel.ts";

/** A body of a user: it selects without a lock, decides, and writes what it decided. */
export type Step =
  | { readonly kind: "raise"; readonly id: number; readonly by: number }
  /** Refused when it would leave the first account below zero. */
  | {
      readonly kind: "move";
      readonly from: number;
      readonly to: number;
      readonly cents: number;
    }
  /** One more in one of the seats, refused when all seats together are full. */
  | { readonly kind: "fill"; readonly seat: number };

export const accounts: readonly number[] = [1, 2, 3];
export const seats: readonly number[] = [11, 12, 13];
export const startCents = 10;
export const filledMax = 4;

/** What a step that was not refused has added, by account. */
export function changesOf(step: Step): readonly (readonly [number, number])[] {
  switch (step.kind) {
    case "raise":
      return [[step.id, step.by]];
    case "move":
      return [
        [step.from, -step.cents],
        [step.to, step.cents],
      ];
    default:
      return [[step.seat, 1]];
  }
}

export function* createLedger(): Tx<void> {
  yield* run(sql`
    CREATE TABLE app_account (
      id ${integer} PRIMARY KEY, cents ${integer} NOT NULL, version ${integer} NOT NULL) ${strict}`);
  yield* run(sql`
    CREATE TABLE app_entry (
      account ${integer} NOT NULL, version ${integer} NOT NULL,
      before_cents ${integer} NOT NULL, after_cents ${integer} NOT NULL) ${strict}`);
}

export function* emptyLedger(): Tx<void> {
  yield* run(sql`DELETE FROM app_entry`);
  yield* run(sql`DELETE FROM app_account`);
  for (const id of [...accounts, ...seats])
    yield* run(
      sql`INSERT INTO app_account (id, cents, version) VALUES (${id}, ${accounts.includes(id) ? startCents : 0}, 0)`,
    );
}

interface Account {
  readonly id: number;
  readonly cents: number;
  readonly version: number;
}

/** True when it was done. */
export function* stepBody(step: Step): Tx<boolean> {
  const changes = changesOf(step);
  const found: Account[] = [];
  for (const [id] of changes) found.push(yield* account(id));
  if (step.kind === "move" && (found[0]?.cents ?? 0) < step.cents) return false;
  if (step.kind === "fill" && (yield* filled()) >= filledMax) return false;
  for (const [index, [, by]] of changes.entries()) {
    const one = found[index];
    if (one !== undefined) yield* changed(one, by);
  }
  return true;
}

function* account(id: number): Tx<Account> {
  const found = yield* row<Account>(
    sql`SELECT id, cents, version FROM app_account WHERE id = ${id}`,
  );
  if (found === undefined) throw new Error(`There is no account ${id}.`);
  return found;
}

function* filled(): Tx<number> {
  const found = yield* rows<Account>(sql`SELECT id, cents, version FROM app_account WHERE id > 10`);
  return found.reduce((sum, { cents }) => sum + cents, 0);
}

function* changed({ id, cents, version }: Account, by: number): Tx<void> {
  yield* run(sql`
    UPDATE app_account SET cents = ${cents + by}, version = ${version + 1} WHERE id = ${id}`);
  yield* run(sql`
    INSERT INTO app_entry (account, version, before_cents, after_cents)
    VALUES (${id}, ${version + 1}, ${cents}, ${cents + by})`);
}
