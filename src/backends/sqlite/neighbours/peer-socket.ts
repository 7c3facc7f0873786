import type { Socket } from "node:net";
import { StringDecoder } from "node:string_decoder";
import type { OwnerId } from "../../../model/prefixed-id.ts";
import type { Change } from "../../../sql/operation.ts";

/** What peers say to each other, one JSON text per line. */
export type PeerMessage =
  | { readonly hello: string; readonly listening: boolean }
  | { readonly listening: boolean }
  /** What a commit changed, after it is durable; null when it is too much to say. */
  | { readonly changes: readonly (readonly [string, string])[] | null }
  /** The sender found the write lock taken, and wants to hear when it is free. */
  | { readonly waiting: true }
  /** The sender has committed, so whoever waited may try. */
  | { readonly free: true }
  /** The sender is about to restart the log, and asks others not to start a batch. */
  | { readonly hold: boolean }
  /** This peer closes its database in order: it has not died. */
  | { readonly bye: true };

/** A peer that does not read gets no details, only that it missed some. */
const unreadBytesMax = 65_536;
/** More than this in one line is somebody else's protocol. */
const lineCharactersMax = 1_048_576;
const changesMax = 64;

/** One connection to a peer. */
export class PeerSocket {
  readonly #socket: Socket;
  #missed = false;
  /** Who is at the other end, once it said so. */
  peer: OwnerId | undefined;
  /** Whether the other end has subscribers, so that ringing is of use. */
  isListening = false;
  saidBye = false;

  constructor(
    socket: Socket,
    onMessage: (message: PeerMessage) => void,
    onClose: () => void,
  ) {
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
        onMessage(message);
      }
    });
    socket.on("drain", () => this.#catchUp());
    socket.on("error", () => socket.destroy());
    socket.on("close", onClose);
  }

  say(message: PeerMessage): void {
    if (this.#socket.writable)
      this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  /** Rings: tells what changed, or that something did. */
  ring(changes: readonly Change[]): void {
    if (!this.isListening) return;
    if (this.#socket.writableLength > unreadBytesMax) this.#missed = true;
    else if (changes.length === 0 || changes.length > changesMax)
      this.say({ changes: null });
    else
      this.say({
        changes: changes.map(({ operation, key }) => [operation, key]),
      });
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Ends after what was said has been handed to the kernel. */
  end(): void {
    this.#socket.destroySoon();
  }

  #catchUp(): void {
    if (!this.#missed) return;
    this.#missed = false;
    this.say({ changes: null });
  }
}

function parsed(line: string): PeerMessage | undefined {
  try {
    const message: unknown = JSON.parse(line);
    return typeof message === "object" && message !== null
      ? (message as PeerMessage)
      : undefined;
  } catch {
    return undefined;
  }
}
