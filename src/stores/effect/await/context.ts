import { outcomeOf, type AwaitEnd, type AwaitOutcome } from "../../../model/effect/await-event.ts";
import { awaitSecretBytes, isAwaitSecret } from "../../../model/effect/await-token.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { hexOf } from "../../../model/values/hex.ts";
import { isStoredError, restoredFailure } from "../../../model/values/restored-error.ts";
import type { ValueCodec } from "../../../model/values/value-codec.ts";
import type { Database } from "../../../sql/database.ts";
import { row, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { storeCodec, storeContext, type StoreContext, type StoreOptions } from "../../context.ts";
import { readValue } from "../../damage.ts";
import { awaitEventTable, type AwaitRecord } from "./event-row.ts";

/** What operations on await-events and groups are given besides their input. */
export interface AwaitContext extends StoreContext {
  /** For what is the store's own: no limit is meant for that. */
  readonly ownCodec: ValueCodec;
}

export function awaitContext(database: Database, options: StoreOptions | undefined): AwaitContext {
  const context = storeContext(database, options);
  const { payload } = options ?? {};
  const ownCodec = storeCodec(database, payload === undefined ? {} : { payload });
  return { ...context, ownCodec };
}

const secretTable = "holdfast_await_secret";

/** What signs the tokens of this database, as bytes in hexadecimal; undefined as long as none was given out. @throws HoldfastError `CORRUPT_ROW` */
export function* signingSecret({ ownCodec }: AwaitContext): Tx<string | undefined> {
  const found = yield* row<{ readonly secret: Encoded }>(sql`
    SELECT secret FROM holdfast_await_secret WHERE id = 1`);
  if (found === undefined) return undefined;
  const secret = readValue(secretTable, 1, () => ownCodec.decode(found.secret));
  if (isAwaitSecret(secret)) return secret;
  throw corruptRow(secretTable, 1, "holds no secret");
}

/** The same, made when there is none yet. Of several transactions that make it at once one wins. */
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
  context: Pick<AwaitContext, "decode">,
  { id, state, payload }: Pick<AwaitRecord, "id" | "state" | "payload">,
): AwaitOutcome<unknown, Error> | undefined {
  return state === "open"
    ? undefined
    : readEnd(context, {
        table: awaitEventTable,
        row: id,
        end: state,
        payload,
      });
}

/** The same of whatever ends so: an effect returns or throws. @throws HoldfastError `CORRUPT_ROW` */
export function readEnd(
  { decode }: Pick<AwaitContext, "decode">,
  ended: {
    readonly table: string;
    readonly row: string;
    readonly end: AwaitEnd;
    readonly payload: Encoded | null;
  },
): AwaitOutcome<unknown, Error> | undefined {
  const { table, row: key, end, payload } = ended;
  const value = (): unknown => readValue(table, key, () => decode(payload ?? ("" as Encoded)));
  return outcomeOf(end, {
    value,
    error() {
      const stored = value();
      if (isStoredError(stored)) return restoredFailure(stored);
      throw corruptRow(table, key, "holds no error");
    },
  });
}
