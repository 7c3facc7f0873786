import { outcomeOf, type AwaitEnd, type AwaitOutcome } from "../../../model/effect/await-event.ts";
import { awaitSecretBytes, isAwaitSecret } from "../../../model/effect/await-token.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import type { CheckedText, Encoded } from "../../../model/values/encoded.ts";
import { hexOf } from "../../../model/values/hex.ts";
import { isStoredError, restoredFailure } from "../../../model/values/restored-error.ts";
import { withoutStacks } from "../../../model/values/stored-error.ts";
import type { ValueCodec } from "../../../model/values/value-codec.ts";
import type { Database } from "../../../sql/database.ts";
import { row, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import {
  isUnchanged,
  storeCodec,
  storeContext,
  type StoreContext,
  type StoreOptions,
} from "../../context.ts";
import { changedRow, readValue } from "../../damage.ts";
import { awaitEventTable, type AwaitRecord } from "./event-row.ts";

/** The context of operations on await-events. */
export interface AwaitContext extends StoreContext {
  /** For the store's own values, which have no size limit. */
  readonly ownCodec: ValueCodec;
}

export function awaitContext(database: Database, options: StoreOptions | undefined): AwaitContext {
  const context = storeContext(database, options);
  const { payload } = options ?? {};
  const ownCodec = storeCodec(database, payload === undefined ? {} : { payload });
  return { ...context, ownCodec };
}

const secretTable = "holdfast_await_secret";

/**
 * The secret that signs the tokens of this database, as bytes in hexadecimal; undefined until the
 * first token is handed out.
 *
 * @throws HoldfastError `CORRUPT_ROW`
 */
export function* signingSecret({ ownCodec }: AwaitContext): Tx<string | undefined> {
  const found = yield* row<{ readonly secret: Encoded }>(sql`
    SELECT secret FROM holdfast_await_secret WHERE id = 1`);
  if (found === undefined) return undefined;
  const secret = readValue(secretTable, 1, () => ownCodec.decode(found.secret));
  if (isAwaitSecret(secret)) return secret;
  throw corruptRow(secretTable, 1, "holds no secret");
}

/** Reads the secret, or creates it. Of several transactions that create it at once, one wins. */
export function* ensureSecret(context: AwaitContext): Tx<string> {
  const found = yield* signingSecret(context);
  if (found !== undefined) return found;
  const { entropy, ownCodec } = context;
  const candidate = hexOf(entropy.bytes(awaitSecretBytes));
  const stored = ownCodec.encode(candidate) as Encoded;
  yield* run(sql`
    INSERT INTO holdfast_await_secret (id, secret) VALUES (1, ${stored}) ON CONFLICT (id) DO NOTHING`);
  return (yield* signingSecret(context)) ?? candidate;
}

/** The outcome of an await-event; undefined while it is open, and when it was revoked. @throws HoldfastError `CORRUPT_ROW` */
export function readOutcome(
  context: Pick<AwaitContext, "codec" | "database">,
  { id, state, payload, hash }: Pick<AwaitRecord, "id" | "state" | "payload" | "hash">,
): AwaitOutcome<unknown, Error> | undefined {
  return state === "open"
    ? undefined
    : readEnd(context, {
        table: awaitEventTable,
        row: id,
        end: state,
        answer: payload === null ? null : { text: payload, hash },
      });
}

/**
 * An answer as it is stored. An await-event stores a hash of its value beside it, an effect a
 * checksum of its text.
 */
type StoredAnswer = CheckedText | { readonly text: Encoded; readonly hash: string | null };

/**
 * The outcome of an await-event or an effect; an effect ends by returning or throwing.
 * @throws HoldfastError `CORRUPT_ROW`
 */
function readEnd(
  { codec, database }: Pick<AwaitContext, "codec" | "database">,
  ended: {
    readonly table: string;
    readonly row: string;
    readonly end: AwaitEnd;
    readonly answer: StoredAnswer | null;
  },
): AwaitOutcome<unknown, Error> | undefined {
  const { table, row: key, end, answer } = ended;
  const read = (domain: string, hashed: (value: unknown) => unknown): unknown => {
    if (answer === null) throw corruptRow(table, key, "has lost its value");
    const value = readValue(table, key, () => codec.decode(answer.text));
    const isSame =
      "checksum" in answer
        ? isUnchanged(database, answer)
        : codec.agrees(domain, 1, hashed(value), answer.hash ?? "");
    if (isSame) return value;
    throw changedRow(table, key);
  };
  return outcomeOf(end, {
    value: () => read("await-value", (value) => value),
    error() {
      // Stacks differ between machines, so the hash leaves them out.
      const stored = read("await-error", (error) =>
        isStoredError(error) ? withoutStacks(error) : error,
      );
      if (isStoredError(stored)) return restoredFailure(stored);
      throw corruptRow(table, key, "holds no error");
    },
  });
}
