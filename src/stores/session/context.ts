import {
  blobGraceDefault,
  checkedProfile,
  prepareBlob,
  verifiedBlob,
  type BlobKind,
  type BlobProfile,
  type NewBlob,
  type StoredBlob,
} from "../../model/blob.ts";
import { durationMs, type Duration } from "../../model/time/durations.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { messageText } from "../../model/session/message.ts";
import type { HashValue } from "../../model/session/turn.ts";
import { givenInvalid } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import { storeCodec, storeContext, type StoreContext, type StoreOptions } from "../context.ts";

export interface SessionOptions extends StoreOptions {
  /** The compression of checkpoints; see `blobs`. */
  readonly profile?: BlobProfile;
  /**
   * The time for which standalone blobs are kept without a reference; defaults to 1 hour, as for
   * `maintenance`.
   */
  readonly grace?: Duration;
  /**
   * Called after every committed turn: a `maintenance` that collects garbage after a number of
   * them.
   */
  readonly maintenance?: CommitListener;
}

interface CommitListener {
  afterCommit(): Promise<unknown>;
}

export interface SessionContext extends StoreContext {
  readonly graceMs: number;
  readonly hash: HashValue;
  /** Encodes a value as a blob. Its text is encoded first, so it is encrypted where values are. */
  readonly blob: (value: unknown, kind: BlobKind, at: number) => NewBlob;
  /** @throws HoldfastError `CORRUPT_ROW` */
  readonly readBlob: (stored: StoredBlob) => unknown;
  /** Notifies the commit listener; never fails and is not awaited. */
  readonly afterCommit: () => void;
  /** The text of a stored message as lists show it; empty for an unreadable message. */
  readonly textOf: (payload: Encoded) => Encoded;
  /** True when lists may show this message already. An unreadable message may be any. */
  readonly isShownAs: (payload: Encoded, shown: Encoded) => boolean;
}

/** Hashes cover whole turns. Each value in a turn has its own limit, which encoding checks. */
const turnCharactersMax = 256 * 1024 * 1024;

/** @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID` */
export function sessionContext(database: Database, options?: SessionOptions): SessionContext {
  const context = storeContext(database, options, ["profile", "grace", "maintenance"]);
  const { encode, decode } = context;
  const { payload, profile, grace, maintenance } = options ?? {};
  const hashing = storeCodec(database, {
    ...(payload && { payload }),
    valueLimits: { charactersMax: turnCharactersMax },
  });
  const compression = checkedProfile(
    profile ?? (database.durability === "memory" ? "lowLatency" : "balanced"),
  );
  checkListener(maintenance);
  return {
    ...context,
    graceMs: durationMs(grace ?? blobGraceDefault, "grace"),
    afterCommit: () => void maintenance?.afterCommit().catch(() => undefined),
    hash: (domain, version, value) => hashing.hash(domain, version, value),
    blob: (value, kind, at) =>
      prepareBlob(database.bytes, {
        content: new TextEncoder().encode(encode(value)),
        kind,
        profile: compression,
        at,
      }),
    readBlob: (stored) =>
      decode(new TextDecoder().decode(verifiedBlob(database.bytes, stored)) as Encoded),
    textOf(payloadText) {
      try {
        return encode(messageText(decode(payloadText)));
      } catch {
        // The graph names the damaged row; here it must not block work on other rows.
        return encode("");
      }
    },
    isShownAs(payloadText, shown) {
      try {
        return messageText(decode(payloadText)) === decode(shown);
      } catch {
        return true;
      }
    },
  };
}

/** The options that a session shares with the stores beneath it. */
export function sharedOptions(options: SessionOptions = {}): StoreOptions {
  const { clock, entropy, payload, valueLimits } = options;
  return {
    ...(clock && { clock }),
    ...(entropy && { entropy }),
    ...(payload && { payload }),
    ...(valueLimits && { valueLimits }),
  };
}

function checkListener(given: CommitListener | undefined): void {
  if (given !== undefined && typeof given?.afterCommit !== "function")
    throw givenInvalid("maintenance", "the result of maintenance()", given);
}
