import { lstatSync, mkdirSync, readdirSync, rmSync, rmdirSync, statSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { Server, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256Hex } from "../../../host/hash.ts";
import { sleep } from "../../../host/timers.ts";
import { parseOwnerId } from "../../../model/ids/prefixed-id.ts";
import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import type { Change } from "../../../sql/operation.ts";
import { PeerSocket, rungText } from "./peer-socket.ts";
import type { PeerMessage } from "./peer-socket.ts";

export interface PeerEvents {
  /** Called when a peer has made a durable commit. */
  readonly onRing: (changes: readonly Change[] | undefined) => void;
  /** Called when a peer has released the write lock. @returns whether any call waited for it. */
  readonly onFree: () => boolean;
  /**
   * Called when a peer restarts the log: no batch may start until the returned function is called.
   */
  readonly onHold: () => () => void;
  /** Called when the connection to a peer closed without a farewell, to check whether it died. */
  readonly onGone: (peer: OwnerId) => void;
}

/** The time limit for sending a farewell. */
const farewellMs = 200;
/**
 * The longest hold. A restart takes about 10 ms, so a peer that does not end its hold is ignored.
 */
const holdMsMax = 100;
/** Some systems silently truncate a longer path and listen on the shorter name. */
const pathBytesMax = 100;

/**
 * The processes that have the same file open, connected by local sockets. A connection carries
 * rings. Its end is a hint that the process at the other end may have died. It is only a hint:
 * owner-locks.ts proves a death.
 *
 * The sockets live in this user's own folder, named after the identity of the file. Where that
 * folder is unavailable, the watch and the poll must do.
 */
export class Peers {
  readonly #owner: OwnerId;
  readonly #events: PeerEvents;
  readonly #folder: string;
  readonly #sockets = new Set<PeerSocket>();
  /** The peers that wait for the write lock, longest first. */
  readonly #waiting = new Set<PeerSocket>();
  readonly #holds = new Map<PeerSocket, () => void>();
  #server: Server | undefined;
  #isListening = false;
  #isClosed = false;
  /** The reason why there are no sockets, for `stats()`. */
  unavailable: string | undefined;

  constructor(database: string, owner: OwnerId, events: PeerEvents, base: string | undefined) {
    const { dev, ino } = statSync(database, { bigint: true });
    this.#folder = join(base ?? tmpdir(), `hf-${sha256Hex(`${dev}:${ino}`).slice(0, 16)}`);
    this.#owner = owner;
    this.#events = events;
  }

  /** The connected peers that have introduced themselves. */
  get connected(): readonly OwnerId[] {
    const names = [...this.#sockets].map((socket) => socket.peer);
    return [...new Set(names.filter((name) => name !== undefined))];
  }

  /**
   * Listens, then connects to peers that already listen: of two processes, the later one finds the
   * other.
   */
  async start(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#makeFolder();
        await this.#listen();
        break;
      } catch (error) {
        // The last process to leave may have removed the folder in between.
        if ((error as NodeJS.ErrnoException).code === "ENOENT" && attempt < 5) continue;
        this.unavailable = (error as Error).message;
        return;
      }
    }
    await Promise.all(this.#others().map((peer) => this.#connect(peer)));
  }

  /** Reconnects to a living peer whose connection was lost. */
  async reconnect(peer: OwnerId): Promise<void> {
    if (!this.#isClosed && !this.connected.includes(peer)) await this.#connect(peer);
  }

  /** Tells peers whether this process has subscribers. */
  listen(isListening: boolean): void {
    this.#isListening = isListening;
    for (const socket of this.#sockets) socket.say({ listening: isListening });
  }

  /** Sends changes to listening peers. An empty list means an unnamed change. */
  ring(changes: readonly Change[]): void {
    let rung: string | undefined;
    for (const socket of this.#sockets)
      if (socket.isListening) socket.ring((rung ??= rungText(changes)));
  }

  /** Asks the peers to start no batch, or allows them to continue. */
  hold(isHeld: boolean): void {
    for (const socket of this.#sockets) socket.say({ hold: isHeld });
  }

  /**
   * Asks the peers to announce when the write lock is free. Each is asked only once per answer:
   * eight processes that asked all others at every attempt woke each other five times per commit.
   * @returns whether there is any peer to ask.
   */
  wait(): boolean {
    for (const socket of this.#sockets) {
      if (socket.knowsThatWeWait) continue;
      socket.knowsThatWeWait = true;
      socket.say({ waiting: true });
    }
    return this.#sockets.size > 0;
  }

  /**
   * Announces the free lock to the longest waiter. If all were notified, all but one would fail.
   * @returns whether any peer waited.
   */
  free(): boolean {
    for (const socket of this.#waiting) {
      this.#waiting.delete(socket);
      socket.say({ free: true });
      return true;
    }
    return false;
  }

  /** Removes the socket of a process that died. */
  forget(peer: OwnerId): void {
    try {
      rmSync(this.#path(peer), { force: true });
    } catch {
      // Without a folder for sockets there is no socket to remove.
    }
  }

  /** Closes the connections. Without a farewell the peers check whether this process has died. */
  async close(options: { readonly sayBye: boolean }): Promise<void> {
    this.#isClosed = true;
    for (const socket of this.#sockets) {
      if (options.sayBye) socket.say({ bye: true });
      socket.end();
    }
    // Closing the server removes its socket file, and waits for connections.
    const closed = new Promise<void>((resolve) => {
      if (this.#server === undefined) resolve();
      else this.#server.close(() => resolve());
    });
    const left = new AbortController();
    const patience = sleep(farewellMs, left.signal).catch(() => undefined);
    await Promise.race([closed, patience]);
    // The timer would keep the process alive for no reason.
    left.abort();
    // A stopped peer does not read its farewell.
    for (const socket of this.#sockets) socket.close();
    await closed;
    try {
      // Succeeds for the last process to leave.
      rmdirSync(this.#folder);
    } catch {
      // Other processes are still here, or the folder never existed.
    }
  }

  #makeFolder(): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const found = lstatSync(this.#folder);
    const isOurs = process.getuid === undefined || found.uid === process.getuid();
    if (!found.isDirectory() || !isOurs || (found.mode & 0o077) !== 0)
      throw new Error(`${this.#folder} is not a private folder of this user`);
    const bytes = Buffer.byteLength(this.#path(this.#owner));
    if (bytes > pathBytesMax)
      throw new Error(`the path of a socket would have ${bytes} bytes, more than ${pathBytesMax}`);
  }

  async #listen(): Promise<void> {
    const server = createServer((socket) => this.#adopt(socket));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      // Exclusive, or a cluster's primary would own the socket and outlive us.
      server.listen({ path: this.#path(this.#owner), exclusive: true }, resolve);
    });
    server.on("error", () => undefined);
    server.unref();
  }

  #others(): readonly OwnerId[] {
    return readdirSync(this.#folder).flatMap((name) => {
      try {
        const peer = parseOwnerId(name.replace(/\.sock$/, ""));
        return peer === this.#owner ? [] : [peer];
      } catch {
        return [];
      }
    });
  }

  #connect(peer: OwnerId): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(this.#path(peer));
      socket.once("connect", () => {
        this.#adopt(socket, peer);
        resolve();
      });
      socket.once("error", (error: NodeJS.ErrnoException) => {
        // The socket has no listener: a process that died left it behind.
        if (error.code === "ECONNREFUSED") this.#events.onGone(peer);
        resolve();
      });
    });
  }

  #adopt(raw: Socket, peer?: OwnerId): void {
    if (this.#isClosed) return void raw.destroy();
    const socket = new PeerSocket(raw, {
      onMessage: (message) => this.#heard(socket, message),
      onMissed: () => {
        socket.knowsThatWeWait = false;
        socket.say({ listening: this.#isListening });
        if (socket.isListening) socket.say({ changes: null });
      },
      onClose: () => this.#closed(socket),
    });
    socket.peer = peer;
    this.#sockets.add(socket);
    socket.say({ hello: this.#owner, listening: this.#isListening });
  }

  /** Handles a message, and disconnects a process that speaks another protocol. */
  #heard(socket: PeerSocket, message: PeerMessage): void {
    try {
      this.#obey(socket, message);
    } catch {
      socket.close();
    }
  }

  #obey(socket: PeerSocket, message: PeerMessage): void {
    if ("hello" in message) socket.peer = parseOwnerId(message.hello);
    if ("listening" in message) {
      const begins = message.listening && !socket.isListening;
      socket.isListening = message.listening;
      // Our commits before we knew were not rung.
      if (begins) socket.say({ changes: null });
    }
    if ("waiting" in message) this.#waiting.add(socket);
    if ("free" in message) this.#takeTurn(socket);
    if ("hold" in message) this.#holdFor(socket, message.hold);
    if ("bye" in message) socket.saidBye = true;
    if ("changes" in message)
      this.#events.onRing(message.changes?.map(([operation, key]) => ({ operation, key })));
  }

  /** Passes on a turn that came too late, because another peer's turn came first. */
  #takeTurn(from: PeerSocket): void {
    from.knowsThatWeWait = false;
    if (!this.#events.onFree()) this.free();
  }

  #closed(socket: PeerSocket): void {
    this.#sockets.delete(socket);
    this.#waiting.delete(socket);
    this.#holdFor(socket, false);
    if (this.#isClosed || socket.saidBye || socket.peer === undefined) return;
    this.#events.onGone(socket.peer);
  }

  /**
   * Limits a peer to one short hold, since the peer may be stopped in the middle. A second request
   * does not prolong it, even when it has expired.
   */
  #holdFor(socket: PeerSocket, isHeld: boolean): void {
    if (!isHeld) {
      this.#holds.get(socket)?.();
      this.#holds.delete(socket);
      return;
    }
    if (this.#holds.has(socket)) return;
    const release = this.#events.onHold();
    const ended = new AbortController();
    // Keeps the process alive, since calls may be waiting for the hold to end.
    void sleep(holdMsMax, ended.signal)
      .catch(() => undefined)
      .then(release);
    this.#holds.set(socket, () => ended.abort());
  }

  #path(peer: OwnerId): string {
    return join(this.#folder, `${peer}.sock`);
  }
}
