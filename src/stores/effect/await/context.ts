import { isAwaitSecret } from "../../../model/await-token.ts";
import { outcomeOf } from "../../../model/await-event.ts";
import type { AwaitEnd, AwaitOutcome } from "../../../model/await-event.ts";
import type { Clock } from "../../../model/clock.ts";
import type { Encoded } from "../../../model/encoded.ts";
import type { Entropy } from "../../../model/entropy.ts";
import {
  isStoredError,
  restoredFailure,
} from "../../../model/restored-error.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import { valueCodec } from "../../../model/value-codec.ts";
import type { ValueCodec } from "../../../model/value-codec.ts";
import type { Database } from "../../../sql/database.ts";
import type { StoreEnvironment } from "../../execution/context.ts";
import { readValue } from "../../session/sifted.ts";
import { awaitEventTable } from "./event-row.ts";
import type { AwaitRecord } from "./event-row.ts";

export interface AwaitSurroundings {
  readonly database: Database;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly codec: ValueCodec;
  /** The same for what is the store's own: no limit is meant for that. */
  readonly ownCodec: ValueCodec;
}

export function awaitSurroundings(
  database: Database,
  given: StoreEnvironment,
): AwaitSurroundings {
  const coding = {
    sha256Hex: database.sha256Hex,
    ...(given.payload && { payload: given.payload }),
  };
  return {
    database,
    clock: given.clock ?? database.clock,
    entropy: given.entropy ?? database.entropy,
    codec: valueCodec({
      ...coding,
      ...(given.valueLimits && { limits: given.valueLimits }),
    }),
    ownCodec: valueCodec(coding),
  };
}

/** The secret that signs tokens, as bytes in hexadecimal. @throws HoldfastError `CORRUPT_ROW` */
export function readSecret(codec: ValueCodec, stored: Encoded): string {
  const secret = readValue("holdfast_await_secret", 1, () =>
    codec.decode(stored),
  );
  if (isAwaitSecret(secret)) return secret;
  throw corruptRow("holdfast_await_secret", 1, "holds no secret");
}

/** What came of an await-event; undefined while it is open, and when it was revoked. @throws HoldfastError `CORRUPT_ROW` */
export function readOutcome(
  codec: ValueCodec,
  { id, state, payload }: Pick<AwaitRecord, "id" | "state" | "payload">,
): AwaitOutcome<unknown, Error> | undefined {
  return state === "open"
    ? undefined
    : readEnd(codec, { table: awaitEventTable, row: id, end: state, payload });
}

/** The same of whatever ends so: an effect returns or throws. @throws HoldfastError `CORRUPT_ROW` */
export function readEnd(
  codec: ValueCodec,
  ended: {
    readonly table: string;
    readonly row: string;
    readonly end: AwaitEnd;
    readonly payload: Encoded | null;
  },
): AwaitOutcome<unknown, Error> | undefined {
  const { table, row, end, payload } = ended;
  const value = (): unknown =>
    readValue(table, row, () => codec.decode(payload ?? ""));
  return outcomeOf(end, {
    value,
    error() {
      const stored = value();
      if (isStoredError(stored)) return restoredFailure(stored);
      throw corruptRow(table, row, "holds no error");
    },
  });
}
