import type { PayloadCodec } from "../model/values/payload-codec.ts";
import {
  codecsDiffer,
  markOf,
  refusalOf,
  sealedView,
  type PayloadMark,
} from "../model/values/payload-mark.ts";
import type { HoldfastError } from "../model/errors.ts";
import type { Database } from "../sql/database.ts";
import { afterwards, plainOperation, row, run, type Operation, type Tx } from "../sql/operation.ts";
import { lockRow, lockShared } from "../sql/dialect.ts";
import { sql, type Statement } from "../sql/statement.ts";

/**
 * Prevents the values of one database from passing through two codecs: clear
 * values in an encrypted database, or values under another key.
 *
 *   no row      nothing has been written yet: the first write of a page, or the first
 *               openHoldfast, adds the row in its own transaction
 *   clear       values without a codec. A codec takes the row over if it can read such
 *               values, or if there are none. Until a value exists, each write without
 *               a codec reads the row again
 *   codec       permanent: other codecs must be able to decode the sample
 *
 * Every value codec of the stores calls `assertOpen` before it reads or writes a value,
 * so calls without values are never refused. A codec cannot wait for a database. Values
 * encoded before the row is known are therefore checked inside the transaction that would
 * store them. Once the row is known this costs a comparison per value.
 */
export class PayloadSeal {
  readonly #seen: SeenMark;
  readonly #payload: PayloadCodec | undefined;
  /** The row that this codec can read. */
  #passed: PayloadMark | undefined;
  /**
   * The clear row that stays clear: values exist in the clear, or this codec could not take the row
   * over.
   */
  #kept: PayloadMark | undefined;
  #uses = 0;

  constructor(seen: SeenMark, payload: PayloadCodec | undefined) {
    this.#seen = seen;
    this.#payload = payload;
  }

  /** True if a call of this kind need not read the row. */
  isKnown(kind: "read" | "write"): boolean {
    const { mark, isPending } = this.#seen;
    if (mark === undefined || isPending) return false;
    const isFinal = mark.codec !== null || mark === this.#kept;
    return isFinal || kind === "read" || this.#payload === sealedView;
  }

  /** The number of values that have passed through the codec while the row was unknown. */
  get uses(): number {
    return this.#uses;
  }

  /** The error for refused values, as far as is known. */
  get refusal(): HoldfastError | undefined {
    const { mark } = this.#seen;
    if (mark === undefined || mark === this.#passed || this.#payload === sealedView)
      return undefined;
    const refusal = refusalOf(mark, this.#payload);
    if (refusal === undefined) this.#passed = mark;
    return refusal;
  }

  /** Called before a value is read or written. @throws HoldfastError `PAYLOAD_CODEC_MISSING`, `PAYLOAD_CODEC_WRONG` */
  assertOpen(kind: "read" | "write"): void {
    const isKnown = this.isKnown(kind);
    if (!isKnown) this.#uses += 1;
    if (isKnown || this.#seen.isPending) this.throwRefusal();
  }

  /** @throws HoldfastError `PAYLOAD_CODEC_MISSING`, `PAYLOAD_CODEC_WRONG` */
  throwRefusal(): void {
    const { refusal } = this;
    if (refusal !== undefined) throw refusal;
  }

  /**
   * Reads which codec the database has, inside the calling transaction. A transaction that writes
   * claims a database without a codec.
   * @throws HoldfastError `PAYLOAD_CODEC_MISSING`, `PAYLOAD_CODEC_WRONG` when `hasUsed` says that values wait to be stored
   */
  *learn(kind: "read" | "write", hasUsed = false): Tx<void> {
    const seen = this.#seen;
    if (kind === "write") {
      const mark = yield* this.#see(yield* this.#claim());
      if (this.#payload !== undefined || (yield* holdsValues())) this.#kept = mark;
    } else {
      const mark = yield* readMark();
      // A snapshot may be older than the mark that another call has read since.
      seen.mark ??= mark;
    }
    if (hasUsed) this.throwRefusal();
  }

  /**
   * Wraps an operation so that it first reads the row if necessary. It then has no set form; the
   * next call has one again.
   */
  knowing<I, O>(
    operation: Operation<I, O>,
    kind: "read" | "write",
    hasUsed: boolean,
  ): Operation<I, O> {
    // A call without values of its own has nothing to protect once the row has been read.
    if (this.isKnown(kind) || (!hasUsed && this.#seen.mark !== undefined)) return operation;
    const { name, key, one, isolation, snapshotSafe } = operation;
    const learn = (): Tx<void> => this.learn(kind, hasUsed);
    return plainOperation(name, {
      key,
      *one(input: I) {
        yield* learn();
        return yield* one(input);
      },
      ...(isolation !== undefined && { isolation }),
      ...(snapshotSafe !== undefined && { snapshotSafe }),
    });
  }

  *#claim(): Tx<PayloadMark> {
    const payload = this.#payload;
    const isTaking = payload !== undefined && payload !== sealedView;
    // Writers of the first clear values share the row. A codec that would take it over waits for
    // them.
    const found = yield* readMark(isTaking ? lockRow : lockShared);
    if (found === undefined) return yield* this.#claimFirst();
    if (found.codec !== null || !isTaking) return found;
    const canRead = refusalOf(found, payload) === undefined;
    if (!canRead && (yield* holdsValues())) return found;
    // A secret made in the clear when the database was opened; no token has been issued without a
    // run.
    if (!canRead) yield* run(sql`DELETE FROM holdfast_await_secret`);
    const mark = markOf(payload);
    yield* run(sql`
      UPDATE holdfast_payload_codec SET codec = ${mark.codec}, sample = ${mark.sample}
      WHERE id = 1 AND codec IS NULL`);
    return (yield* readMark()) ?? mark;
  }

  *#claimFirst(): Tx<PayloadMark> {
    const payload = this.#payload === sealedView ? undefined : this.#payload;
    const clear = markOf(undefined);
    const isClear = payload !== undefined && refusalOf(clear, payload) && (yield* holdsValues());
    const mark = isClear ? clear : markOf(payload);
    yield* run(sql`
      INSERT INTO holdfast_payload_codec (id, codec, sample) VALUES (1, ${mark.codec}, ${mark.sample})
      ON CONFLICT (id) DO NOTHING`);
    return (yield* readMark()) ?? mark;
  }

  /**
   * Notes the row that a writing transaction found or wrote. Until the transaction is durable the
   * row is pending, and every call reads it again: the body may be run again, or rolled back.
   */
  *#see(mark: PayloadMark): Tx<PayloadMark> {
    const seen = this.#seen;
    const before = seen.mark;
    if (before !== undefined && !seen.isPending && isSameMark(before, mark)) return before;
    seen.mark = mark;
    seen.isPending = true;
    yield* afterwards({
      durable() {
        seen.mark = mark;
        seen.isPending = false;
      },
      async refused() {
        if (seen.mark !== mark) return;
        seen.mark = undefined;
        seen.isPending = false;
      },
    });
    return mark;
  }
}

function isSameMark(a: PayloadMark, b: PayloadMark): boolean {
  return a.codec === b.codec && a.sample === b.sample;
}

/** Reads the row when a database is opened, so that no later read or write uses a wrong codec. */
export async function recallPayloadMark(database: Database): Promise<void> {
  await database.read("readPayloadCodec", () => payloadSeal(database, undefined).learn("read"));
}

/** The same for a backend that has read the row along with other data. */
export function rememberPayloadMark(database: Database, mark: PayloadMark | undefined): void {
  seenOf(database).mark = mark;
}

/**
 * Allows values to be copied in their stored form, which needs the same codec on both sides.
 * @throws HoldfastError `PAYLOAD_CODEC_WRONG`
 */
export async function takePayloadMark(from: Database, to: Database): Promise<void> {
  const found = await from.read("readPayloadCodec", () => readMark());
  const { codec, sample } = found ?? markOf(undefined);
  await to.write(
    "takePayloadCodec",
    function* () {
      yield* run(sql`
        INSERT INTO holdfast_payload_codec (id, codec, sample) VALUES (1, ${codec}, ${sample})
        ON CONFLICT (id) DO NOTHING`);
      const own = yield* readMark();
      if (own !== undefined && own.codec !== codec) throw codecsDiffer(codec, own.codec);
    },
    { isolation: "readCommitted" },
  );
}

/** The last row that a process has seen, shared by all stores over one database. */
interface SeenMark {
  mark: PayloadMark | undefined;
  /** True while the transaction that found or wrote the row is not durable. */
  isPending: boolean;
  readonly seals: Map<PayloadCodec | undefined, PayloadSeal>;
}

const seenMarks = new WeakMap<Database, SeenMark>();

/** The seal of a database for values that go through this codec. */
export function payloadSeal(database: Database, payload: PayloadCodec | undefined): PayloadSeal {
  const seen = seenOf(database);
  let seal = seen.seals.get(payload);
  if (seal === undefined) {
    seal = new PayloadSeal(seen, payload);
    seen.seals.set(payload, seal);
  }
  return seal;
}

function seenOf(database: Database): SeenMark {
  let seen = seenMarks.get(database);
  if (seen === undefined) {
    seen = { mark: undefined, isPending: false, seals: new Map() };
    seenMarks.set(database, seen);
  }
  return seen;
}

function* readMark(locking: Statement = sql``): Tx<PayloadMark | undefined> {
  return yield* row<PayloadMark>(
    sql`SELECT codec, sample FROM holdfast_payload_codec WHERE id = 1 ${locking}`,
  );
}

/** True if a row exists that may have a value: every value belongs to one of these rows. */
function* holdsValues(): Tx<boolean> {
  const found = yield* row<{ readonly found: number }>(sql`
    SELECT COUNT(*) AS found FROM (
      SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM holdfast_execution)
      UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_session WHERE config IS NOT NULL)
      UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_session_turn)
      UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_process)
      UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_effect)
      UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_await_event)
      UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_queue_batch)
      UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_schedule)
      UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_trigger_subscription)
      UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_trigger_occurrence)
      UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM holdfast_schedule_function)
    ) holder`);
  return (found?.found ?? 0) > 0;
}
