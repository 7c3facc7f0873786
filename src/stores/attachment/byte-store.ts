import { HoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/values/excerpt.ts";
import type { Database } from "../../sql/database.ts";

/**
 * A store for the bytes of attachments. It keeps them under given names. Each name is recorded in
 * the database before its bytes are written, and is never used twice. So the remains of a crash are
 * known by name, and can be removed at any later time without affecting newer bytes.
 */
export interface ByteStore {
  /**
   * The kind of the place, recorded with every name, so that bytes are looked up where they are:
   * "database", or "files:" and the id of a folder. Two places have two kinds.
   */
  readonly kind: string;
  /**
   * True when acknowledged bytes survive a crash. Only a database in memory accepts a store that is
   * not durable.
   */
  readonly isDurable: boolean;
  /** Larger attachments are refused before anything is recorded. */
  readonly bytesMax: number;
  /**
   * Stores bytes under a new name. Resolves with the SHA-256 of the stored bytes once they are
   * safe.
   */
  put(name: string, bytes: Uint8Array): Promise<string>;
  /** Undefined for an unknown name. */
  get(name: string): Promise<Uint8Array | undefined>;
  /** Removes bytes, including those of an interrupted put. No error for an unknown name. */
  remove(name: string): Promise<void>;
}

/**
 * Validates a byte store. A store that names bytes itself, or cannot remove them, cannot use
 * intents: the remains of a crash would stay in it forever. A store that is not durable only fits a
 * database that is not durable either. Turns and effects in any other database are permanent, and
 * would refer to missing bytes.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function checkedByteStore(store: ByteStore, durability: Database["durability"]): ByteStore {
  const isWhole =
    typeof store?.kind === "string" &&
    store.kind !== "" &&
    typeof store.isDurable === "boolean" &&
    Number.isSafeInteger(store.bytesMax) &&
    store.bytesMax > 0 &&
    typeof store.put === "function" &&
    typeof store.get === "function" &&
    typeof store.remove === "function";
  if (isWhole && (store.isDurable || durability === "memory")) return store;
  if (isWhole)
    throw new HoldfastError(
      "OPTION_INVALID",
      `The byte store ${excerpt(store.kind)} is not durable, but this database is: recorded turns and effects would outlive the bytes that they refer to. ` +
        "Leave the option out to keep bytes in the database, or use attachmentFiles(folder). If put of your store resolves only once the bytes survive a crash, set isDurable: true.",
      { option: "bytes" },
    );
  throw new HoldfastError(
    "OPTION_INVALID",
    "A byte store needs kind, isDurable, bytesMax, put(name, bytes), get(name) and remove(name). " +
      "Leave the option out to keep bytes in the database, or use attachmentFiles(folder).",
    { option: "bytes" },
  );
}

/** The error for bytes that could not be stored. The intent stays, and the sweep finds it. */
export function attachmentFailed(id: string, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError(
    "ATTACHMENT_FAILED",
    `The bytes of attachment ${id} were not stored: ${why}. Put them again; nothing refers to any bytes that remain.`,
    { id },
    cause === undefined ? undefined : { cause },
  );
}

/** The number of bytes that are hashed without a pause: about two milliseconds. */
export const bytesPerStep = 1_048_576;

/** Computes the SHA-256 of any number of bytes without blocking other work. */
export async function hashed(
  database: Pick<Database, "bytes" | "pause">,
  bytes: Uint8Array,
): Promise<string> {
  const { bytes: tools } = database;
  if (bytes.length <= bytesPerStep) return tools.sha256Hex(bytes);
  const hash = tools.sha256();
  for (let at = 0; at < bytes.length; at += bytesPerStep) {
    hash.add(bytes.subarray(at, at + bytesPerStep));
    await database.pause();
  }
  return hash.hex();
}
