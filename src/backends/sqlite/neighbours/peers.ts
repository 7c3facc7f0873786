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
  /** A peer committed, and the commit is durable. */
  readonly onRing: (changes: readonly Change[] | undefined) => void;
  /** A peer has given the write lock back. @returns whether anything waited for it. */
  readonly onFree: () => boolean;
  /** A peer restarts the log: no batch may start until the returned function is called. */
  readonly onHold: () => () => void;
  /** The connection to a peer closed without a farewell: look whether it died. */
  readonly onGone: (peer: OwnerId) => void;
}

/** How long a farewell may take to leave. */
const farewellMs = 200;
/** A restart takes some 10 ms; a peer that does not end it is not waited for. */
const holdMsMax = 100;
/** A longer path is silently cut by some systems, and listened on by its shorter name. */
const pathBytesMax = 100;

/**
 * The processes that have the same file open, connected to each other by
 * local sockets. A connection carries rings, and its end is a hint that the
 * process at the other end may have died. Only a hint: owner-locks.ts proves.
 *
 * The sockets live in a folder of this user's, named after the identity of
 * the file. Where that cannot be had, the watch and the poll must do.
 */
export class Peers {
  readonly #owner: OwnerId;
  readonly #events: PeerEvents;
  readonly #folder: string;
  readonly #sockets = new Set<PeerSocket>();
  /** Those who wait for the write lock, longest first. */
  readonly #waiting = new Set<PeerSocket>();
  readonly #holds = new Map<PeerSocket, () => void>();
  #server: Server | undefined;
  #isListening = false;
  #isClosed = false;
  /** Why there are no sockets, for `stats()`. */
  unavailable: string | undefined;

  constructor(database: string, owner: OwnerId, events: PeerEvents, base: string | undefined) {
    const { dev, ino } = statSync(database, { bigint: true });
    this.#folder = join(base ?? tmpdir(), `hf-${sha256Hex(`${dev}:${ino}`).slice(0, 16)}`);
    this.#owner = owner;
    this.#events = events;
  }

  /** Peers that are connected and have said who they are. */
  get connected(): readonly OwnerId[] {
    const names = [...this.#sockets].map((socket) => socket.peer);
    return [...new Set(names.filter((name) => name !== undefined))];
  }

  /** Listens, then connects to those who already do: the process that looks last finds the other. */
  async start(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#makeFolder();
        await this.#listen();
        break;
      } catch (error) {
        // The last one to leave may have removed the folder under our hands.
        if ((error as NodeJS.ErrnoException).code === "ENOENT" && attempt < 5) continue;
        this.unavailable = (error as Error).message;
        return;
      }
    }
    await Promise.all(this.#others().map((peer) => this.#connect(peer)));
  }

  /** Connects again to a peer whose connection was lost but who is alive. */
  async reconnect(peer: OwnerId): Promise<void> {
    if (!this.#isClosed && !this.connected.includes(peer)) await this.#connect(peer);
  }

  /** Tells peers whether this process has subscribers. */
  listen(isListening: boolean): void {
    this.#isListening = isListening;
    for (const socket of this.#sockets) socket.say({ listening: isListening });
  }

  /** Tells those who listen what changed; nothing named means that something did. */
  ring(changes: readonly Change[]): void {
    let rung: string | undefined;
    for (const socket of this.#sockets)
      if (socket.isListening) socket.ring((rung ??= rungText(changes)));
  }

  /** Asks the others to start no batch, or tells them to go on. */
  hold(isHeld: boolean): void {
    for (const socket of this.#sockets) socket.say({ hold: isHeld });
  }

  /**
   * Asks the others to say when the write lock is free. Each is asked once
   * until it has said so: eight processes that asked all others at every
   * attempt woke each other five times per commit.
   * @returns whether there is anybody to ask.
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
   * Tells the one who waits longest that it is. Were all told, all but one
   * would try without success.
   * @returns whether anybody waited.
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
      // Where there is no folder for sockets there is none to remove.
    }
  }

  /** Without a farewell the others look whether this process has died. */
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
    // A peer that was stopped does not read its farewell.
    for (const socket of this.#sockets) socket.close();
    await closed;
    try {
      // Succeeds for the last one to leave.
      rmdirSync(this.#folder);
    } catch {
      // Others are still here, or it never was.
    }
  }

  #makeFolder(): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const found = lstatSync(this.#folder);
    const isOurs = process.getuid === undefined || found.uid === process.getuid();
    if (!found.isDirectory() || !isOurs || (found.mode & 0o077) !== 0)
      throw new Error(`${this.#folder} is not a folder of this user's alone`);
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
        // Nobody listens: a process that died left its socket behind.
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

  /** A process that does not speak our language is hung up on. */
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
      // What we committed before we knew was not rung.
      if (begins) socket.say({ changes: null });
    }
    if ("waiting" in message) this.#waiting.add(socket);
    if ("free" in message) this.#takeTurn(socket);
    if ("hold" in message) this.#holdFor(socket, message.hold);
    if ("bye" in message) socket.saidBye = true;
    if ("changes" in message)
      this.#events.onRing(message.changes?.map(([operation, key]) => ({ operation, key })));
  }

  /** A turn that came too late, for we have had one from another, is passed on. */
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
   * One hold per peer, and none for long: the peer may be stopped in the
   * middle. Asking again does not make it longer, even when it is over.
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
    // Keeps the process alive, since calls may be waiting for the end of it.
    void sleep(holdMsMax, ended.signal)
      .catch(() => undefined)
      .then(release);
    this.#holds.set(socket, () => ended.abort());
  }

  #path(peer: OwnerId): string {
    return join(this.#folder, `${peer}.sock`);
  }
}
