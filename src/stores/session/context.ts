import {
  blobGraceDefault,
  checkedProfile,
  prepareBlob,
  verifiedBlob,
} from "../../model/blob.ts";
import type {
  BlobKind,
  BlobProfile,
  NewBlob,
  StoredBlob,
} from "../../model/blob.ts";
import type { Clock } from "../../model/clock.ts";
import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import type { Encoded } from "../../model/encoded.ts";
import { messageText } from "../../model/session-message.ts";
import type { HashValue } from "../../model/session-turn.ts";
import { valueCodec } from "../../model/value-codec.ts";
import type { Database } from "../../sql/database.ts";
import type { StoreEnvironment } from "../execution/context.ts";

export interface SessionEnvironment extends StoreEnvironment {
  /** When checkpoints are compressed; see `blobs`. */
  readonly profile?: BlobProfile;
  /** How long blobs that somebody put on their own are left alone: 1 hour unless told, as for `maintenance`. */
  readonly grace?: Duration;
  /** Told of every turn that was committed: a `maintenance` that is to collect garbage after so many of them. */
  readonly maintenance?: CommitListener;
}

export interface CommitListener {
  afterCommit(): Promise<unknown>;
}

/** A database with the surroundings that sessions work in. */
export interface SessionSurroundings {
  readonly database: Database;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly encode: (value: unknown) => Encoded;
  readonly decode: (stored: Encoded) => unknown;
  readonly hash: HashValue;
  /** A value as a blob. Its text is encoded first, so that it is encrypted where values are. */
  readonly blob: (value: unknown, kind: BlobKind, at: number) => NewBlob;
  /** @throws HoldfastError `CORRUPT_ROW` */
  readonly readBlob: (stored: StoredBlob) => unknown;
  /** Tells whoever counts commits; never fails and is not waited for. */
  readonly committed: () => void;
  /** What a list shows of a stored message: nothing of one that cannot be read. */
  readonly textOf: (payload: Encoded) => Encoded;
  /** True when that may be what a list shows already; one that cannot be read may be anything. */
  readonly isShownAs: (payload: Encoded, shown: Encoded) => boolean;
}

const turnCharactersMax = 256 * 1024 * 1024;

export function sessionSurroundings(
  database: Database,
  given: SessionEnvironment,
): SessionSurroundings {
  const codec = valueCodec({
    sha256Hex: database.sha256Hex,
    ...(given.payload && { payload: given.payload }),
    ...(given.valueLimits && { limits: given.valueLimits }),
  });
  // Hashes are of whole turns; each value in them is held to its own limit when it is encoded.
  const hashing = valueCodec({
    sha256Hex: database.sha256Hex,
    ...(given.payload && { payload: given.payload }),
    limits: { charactersMax: turnCharactersMax },
  });
  const profile = checkedProfile(
    given.profile ??
      (database.durability === "memory" ? "lowLatency" : "balanced"),
  );
  const encode = (value: unknown): Encoded => codec.encode(value) as Encoded;
  return {
    database,
    clock: given.clock ?? database.clock,
    graceMs: durationMs(given.grace ?? blobGraceDefault, "grace"),
    committed: () =>
      void given.maintenance?.afterCommit().catch(() => undefined),
    encode,
    decode: (stored) => codec.decode(stored),
    hash: (domain, version, value) => hashing.hash(domain, version, value),
    blob: (value, kind, at) =>
      prepareBlob(database.bytes, {
        content: new TextEncoder().encode(encode(value)),
        kind,
        profile,
        at,
      }),
    readBlob: (stored) =>
      codec.decode(
        new TextDecoder().decode(verifiedBlob(database.bytes, stored)),
      ),
    textOf(payload) {
      try {
        return encode(messageText(codec.decode(payload)));
      } catch {
        // The graph names the damaged row; here it must not stop what is done to others.
        return encode("");
      }
    },
    isShownAs(payload, shown) {
      try {
        return messageText(codec.decode(payload)) === codec.decode(shown);
      } catch {
        return true;
      }
    },
  };
}
