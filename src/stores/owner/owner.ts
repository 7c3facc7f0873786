import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import { row, rows, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/**
 * The time in milliseconds for which dead owners are kept, for processes that hold something of
 * theirs.
 */
const deadKeptMs = 30 * 24 * 60 * 60 * 1_000;

interface Registration {
  readonly owner: OwnerId;
  readonly host: string;
  readonly now: number;
}

/** Records a process as an owner, and removes owners that died long ago. */
export const registerOwner = plainOperation("registerOwner", {
  key: (input) => input.owner,
  *one({ owner, host, now }: Registration): Tx<void> {
    yield* run(sql`
      INSERT INTO holdfast_owner (id, host, opened_at, died_at)
      VALUES (${owner}, ${host}, ${now}, NULL)`);
    yield* run(sql`
      DELETE FROM holdfast_owner WHERE died_at IS NOT NULL AND died_at < ${now - deadKeptMs}`);
  },
});

interface Death {
  readonly owner: OwnerId;
  readonly now: number;
}

/**
 * Records a proven death once; later proofs change nothing. An owner that died before its first
 * write has no row yet.
 */
export const recordDeath = plainOperation("recordDeath", {
  key: (input) => input.owner,
  *one({ owner, now }: Death): Tx<void> {
    yield* run(sql`
      INSERT INTO holdfast_owner (id, host, opened_at, died_at)
      VALUES (${owner}, ${"unknown"}, ${now}, ${now})
      ON CONFLICT (id) DO UPDATE SET died_at = excluded.died_at WHERE holdfast_owner.died_at IS NULL`);
  },
});

/** Removes an owner that closed in order: it has already released everything that it held. */
export const forgetOwner = plainOperation("forgetOwner", {
  key: (input) => input.owner,
  *one({ owner }: { readonly owner: OwnerId }): Tx<void> {
    yield* run(sql`DELETE FROM holdfast_owner WHERE id = ${owner}`);
  },
});

/** Tests whether the death of an owner is recorded. */
export const isDeathRecorded = plainOperation("isDeathRecorded", {
  key: (input) => input.owner,
  *one({ owner }: { readonly owner: OwnerId }): Tx<boolean> {
    const found = yield* row<{ readonly died_at: number | null }>(sql`
      SELECT died_at FROM holdfast_owner WHERE id = ${owner}`);
    return found !== undefined && found.died_at !== null;
  },
});

/**
 * Records the death of every process that had the database open before it was moved. None of them
 * can write to it any longer, which other processes treat as a death.
 */
export function* recordAllDeaths(now: number): Tx<void> {
  yield* run(sql`UPDATE holdfast_owner SET died_at = ${now} WHERE died_at IS NULL`);
}

/** A process that has the database open for writing, or had it open until it died. */
export interface KnownOwner {
  readonly id: OwnerId;
  readonly host: string;
  readonly openedAt: number;
  readonly diedAt: number | null;
}

/** The largest number of owners that a reader gets. */
const ownersMax = 200;

/** Returns the owners that opened the database most recently. */
export const listOwners: Operation<undefined, readonly KnownOwner[]> = plainOperation(
  "listOwners",
  {
    key: () => "owners",
    *one() {
      const found = yield* rows<{
        readonly id: OwnerId;
        readonly host: string;
        readonly opened_at: number;
        readonly died_at: number | null;
      }>(sql`
        SELECT id, host, opened_at, died_at FROM holdfast_owner
        ORDER BY opened_at DESC, id LIMIT ${ownersMax}`);
      return found.map(({ id, host, opened_at: openedAt, died_at: diedAt }) => ({
        id,
        host,
        openedAt,
        diedAt,
      }));
    },
  },
);
