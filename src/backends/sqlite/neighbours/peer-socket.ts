import type { Socket } from "node:net";
import { StringDecoder } from "node:string_decoder";
import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import type { Change } from "../../../sql/operation.ts";

/** What peers say to each other, one JSON text per line. */
export type PeerMessage =
  | { readonly hello: string; readonly listening: boolean }
  | { readonly listening: boolean }
  /** What a commit changed, after it is durable; null when it is too much to say. */
  | { readonly changes: readonly (readonly [string, string])[] | null }
  /** The sender found the write lock taken, and wants to hear when it is free. */
  | { readonly waiting: true }
  /** The sender has committed, so a process that waited may try. */
  | { readonly free: true }
  /** The sender is about to restart the log, and asks others not to start a batch. */
  | { readonly hold: boolean }
  /** This peer closes its database in order: it has not died. */
  | { readonly bye: true };

/** A peer that does not read so much is told nothing more, and later that it missed some. */
const unreadBytesMax = 65_536;
/** More than this in one line is somebody else's protocol. */
const lineCharactersMax = 1_048_576;
/**
 * A batch says its changes by name up to this length. Longer ones make all
 * who wait in other processes look, so there is room for some hundred calls.
 */
const changesCharactersMax = 65_536;

export interface PeerSocketEvents {
  readonly onMessage: (message: PeerMessage) => void;
  /** It reads again and has missed something: whatever it must know is to be said anew. */
  readonly onMissed: () => void;
  readonly onClose: () => void;
}

/** One connection to a peer. */
export class PeerSocket {
  readonly #socket: Socket;
  #missed = false;
  /** Who is at the other end, once it said so. */
  peer: OwnerId | undefined;
  /** Whether the other end has subscribers, so that ringing is of use. */
  isListening = false;
  saidBye = false;
  /** Whether it was asked to say when the write lock is free, and has not yet. */
  knowsThatWeWait = false;

  constructor(socket: Socket, events: PeerSocketEvents) {
    this.#socket = socket;
    socket.unref();
    socket.setNoDelay(true);
    const decoder = new StringDecoder("utf8");
    let rest = "";
    socket.on("data", (chunk: Buffer) => {
      const lines = (rest + decoder.write(chunk)).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > lineCharactersMax) socket.destroy();
      for (const line of lines) {
        const message = parsed(line);
        if (message === undefined) {
          socket.destroy();
          return;
        }
        events.onMessage(message);
      }
    });
    socket.on("drain", () => {
      if (!this.#missed) return;
      this.#missed = false;
      events.onMissed();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", events.onClose);
  }

  /** What a peer that does not read, stopped perhaps, would miss is not kept for it. */
  say(message: PeerMessage): void {
    this.#write(JSON.stringify(message));
  }

  /** Tells what changed, in the words of `rungText`. */
  ring(rung: string): void {
    this.#write(rung);
  }

  #write(line: string): void {
    if (!this.#socket.writable) return;
    if (this.#socket.writableLength > unreadBytesMax) this.#missed = true;
    else this.#socket.write(`${line}\n`);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Ends after what was said has been handed to the kernel. */
  end(): void {
    this.#socket.destroySoon();
  }
}

/** The message that tells what changed, each change once, or that something did. */
export function rungText(changes: readonly Change[]): string {
  const named = new Set<string>();
  for (const { operation, key } of changes) named.add(JSON.stringify([operation, key]));
  const list = [...named].join(",");
  return named.size === 0 || list.length > changesCharactersMax
    ? '{"changes":null}'
    : `{"changes":[${list}]}`;
}

function parsed(line: string): PeerMessage | undefined {
  try {
    const message: unknown = JSON.parse(line);
    return isPeerMessage(message) ? message : undefined;
  } catch {
    return undefined;
  }
}

/** What each word must come with; words we do not know are a newer version's. */
const vocabulary: Readonly<Record<string, (said: unknown) => boolean>> = {
  hello: (said) => typeof said === "string",
  listening: (said) => typeof said === "boolean",
  hold: (said) => typeof said === "boolean",
  waiting: (said) => said === true,
  free: (said) => said === true,
  bye: (said) => said === true,
  changes: (said) => said === null || (Array.isArray(said) && said.every(isNamedChange)),
};

function isPeerMessage(message: unknown): message is PeerMessage {
  return (
    typeof message === "object" &&
    message !== null &&
    Object.entries(message).every(([word, said]) => vocabulary[word]?.(said) ?? true)
  );
}

function isNamedChange(change: unknown): boolean {
  return (
    Array.isArray(change) && change.length === 2 && change.every((part) => typeof part === "string")
  );
}
