import { HoldfastError } from "../../model/errors.ts";
import type { Database } from "../../sql/database.ts";

/**
 * Where the bytes of attachments are. It keeps them under names that it is
 * given: each is recorded in the database before its bytes are written and is
 * never given twice, so whatever a crash leaves is known by name and can be
 * removed at any later time without hitting anything newer.
 */
export interface ByteStore {
  /** Recorded with every name, so that bytes are looked for where they are: "database", or "files:" and the id of a folder. Two places have two kinds. */
  readonly kind: string;
  /** Whether what it has acknowledged survives a crash. */
  readonly isDurable: boolean;
  /** Larger attachments are refused before anything is recorded. */
  readonly bytesMax: number;
  /** Stores bytes under a new name, and resolves with the SHA-256 of what it stored once that is safe. */
  put(name: string, bytes: Uint8Array): Promise<string>;
  /** Undefined when it has nothing of that name. */
  get(name: string): Promise<Uint8Array | undefined>;
  /** Also what an interrupted put has left. No error when there is nothing. */
  remove(name: string): Promise<void>;
}

/**
 * A store that names bytes itself, or cannot remove them, has no use for
 * intents, and what a crash leaves in it would stay for ever.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function checkedByteStore(store: ByteStore): ByteStore {
  const isWhole =
    typeof store?.kind === "string" &&
    store.kind !== "" &&
    typeof store.isDurable === "boolean" &&
    Number.isSafeInteger(store.bytesMax) &&
    store.bytesMax > 0 &&
    typeof store.put === "function" &&
    typeof store.get === "function" &&
    typeof store.remove === "function";
  if (isWhole) return store;
  throw new HoldfastError(
    "OPTION_INVALID",
    "A byte store keeps bytes under the names that intents have recorded: it needs kind, isDurable, bytesMax, put(name, bytes), get(name) and remove(name). " +
      "Leave the option out to keep bytes in the database, or use attachmentFiles(folder).",
    { option: "bytes" },
  );
}

/** The error for bytes that could not be stored; the intent stays, and the sweep finds it. */
export function attachmentFailed(id: string, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError(
    "ATTACHMENT_FAILED",
    `The bytes of attachment ${id} were not stored: ${why}. Put them again; nothing refers to what may be left of them.`,
    { id },
    cause === undefined ? undefined : { cause },
  );
}

/** What is hashed without a pause: about two milliseconds. */
export const bytesPerStep = 1_048_576;

/** The SHA-256 of bytes, however many, without holding up everybody else meanwhile. */
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
