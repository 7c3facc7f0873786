import type { Socket } from "node:net";
import { StringDecoder } from "node:string_decoder";
import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import type { Change } from "../../../sql/operation.ts";

/** Messages between peers, one JSON text per line. */
export type PeerMessage =
  | { readonly hello: string; readonly listening: boolean }
  | { readonly listening: boolean }
  /** The changes of a commit, sent after it is durable; null when there are too many. */
  | { readonly changes: readonly (readonly [string, string])[] | null }
  /** The sender found the write lock taken and asks to be notified when it is free. */
  | { readonly waiting: true }
  /** The sender has committed, so a process that waited may try. */
  | { readonly free: true }
  /** The sender is about to restart the log and asks others to start no batch. */
  | { readonly hold: boolean }
  /** The sender closes its database in order: it has not died. */
  | { readonly bye: true };

/**
 * A peer with this many unread bytes gets no further messages, and learns later that it missed
 * some.
 */
const unreadBytesMax = 65_536;
/** A longer line belongs to another protocol. */
const lineCharactersMax = 1_048_576;
/**
 * The length up to which a batch names its changes. A longer list makes every waiter in other
 * processes check, so there is room for several hundred calls.
 */
const changesCharactersMax = 65_536;

export interface PeerSocketEvents {
  readonly onMessage: (message: PeerMessage) => void;
  /** Called when the peer reads again and has missed something: everything must be sent to it again. */
  readonly onMissed: () => void;
  readonly onClose: () => void;
}

/** One connection to a peer. */
export class PeerSocket {
  readonly #socket: Socket;
  #missed = false;
  /** The owner at the other end, once it has introduced itself. */
  peer: OwnerId | undefined;
  /** True when the other end has subscribers, so that ringing is useful. */
  isListening = false;
  saidBye = false;
  /** True when the peer was asked to announce a free write lock and has not done so yet. */
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

  /**
   * Sends a message. Nothing is stored for a peer that does not read, perhaps because it is
   * stopped.
   */
  say(message: PeerMessage): void {
    this.#write(JSON.stringify(message));
  }

  /** Sends the changes in the form of `rungText`. */
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

  /** Ends once all messages have been handed to the kernel. */
  end(): void {
    this.#socket.destroySoon();
  }
}

/** The message that names each change once, or says only that something changed. */
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

/** The type of each field's value. Unknown fields belong to a newer version. */
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
