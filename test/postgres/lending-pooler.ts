import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { once } from "node:events";
import { urlWith } from "./place.ts";

/** A session at the server, and the client that it is lent to. */
interface Session {
  readonly socket: Socket;
  readonly split: (data: Buffer) => readonly Buffer[];
  borrower: Client | undefined;
  /** Questions whose last answer has not come. */
  pending: number;
}

interface Client {
  readonly socket: Socket;
  session: Session | undefined;
  isLoggedIn: boolean;
}

/**
 * A pooler that lends a session for one transaction, and another one for the
 * next, as PgBouncer does in its transaction mode. Each client logs in over a
 * session of its own, which is everybody's from then on.
 */
export class LendingPooler {
  readonly #server: Server;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();
  readonly #free: Session[] = [];
  readonly #waiting: (() => void)[] = [];
  /** Swallows what the clients say from now on. */
  isSilent = false;

  static async to(url: string): Promise<LendingPooler> {
    const { hostname, port } = new URL(url);
    const pooler = new LendingPooler(hostname, Number(port));
    pooler.#server.listen(0, "127.0.0.1");
    await once(pooler.#server, "listening");
    return pooler;
  }

  private constructor(host: string, port: number) {
    this.#target = { host, port };
    this.#server = createServer((socket) => this.#welcome(socket));
  }

  urlFor(url: string): string {
    const { port } = this.#server.address() as AddressInfo;
    return urlWith((parsed) => (parsed.port = String(port)), url);
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #welcome(socket: Socket): void {
    const own: Session = {
      socket: connect({ ...this.#target, noDelay: true }),
      split: splitter(),
      borrower: undefined,
      pending: 1,
    };
    const client: Client = { socket, session: own, isLoggedIn: false };
    own.borrower = client;
    this.#keep(socket.setNoDelay(true));
    this.#keep(own.socket);
    own.socket.on("data", (data) => {
      for (const message of own.split(data)) this.#answer(own, message);
    });
    const split = splitter();
    socket.on("data", (data) => {
      if (this.isSilent) return;
      if (!client.isLoggedIn) return void own.socket.write(data);
      for (const message of split(data)) this.#ask(client, message);
    });
    socket.on("close", () => {
      if (client.session !== undefined) client.session.socket.destroy();
    });
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => this.#sockets.delete(socket));
  }

  #ask(client: Client, message: Buffer): void {
    if (isOf(message, "X")) return;
    if (client.session === undefined) {
      // The one that was lent longest ago: hardly ever the one of before.
      const session = this.#free.shift();
      if (session === undefined) return void this.#waiting.push(() => this.#ask(client, message));
      session.borrower = client;
      client.session = session;
    }
    const { session } = client;
    if (isOf(message, "Q") || isOf(message, "S")) session.pending += 1;
    session.socket.write(message);
  }

  #answer(session: Session, message: Buffer): void {
    const client = session.borrower;
    if (client === undefined) return;
    if (isOf(message, "K")) message.writeInt32BE(message.readInt32BE(5) + 1_000_000, 5);
    client.socket.write(message);
    if (!isOf(message, "Z")) return;
    session.pending -= 1;
    client.isLoggedIn = true;
    if (session.pending > 0 || message[5] !== "I".codePointAt(0)) return;
    session.borrower = undefined;
    client.session = undefined;
    this.#free.push(session);
    this.#waiting.shift()?.();
  }
}

function isOf(message: Buffer, type: string): boolean {
  return message[0] === type.codePointAt(0);
}

/** Cuts what arrives into whole messages: a type, then a length that counts itself. */
function splitter(): (data: Buffer) => readonly Buffer[] {
  let rest: Buffer = Buffer.alloc(0);
  return (data) => {
    rest = Buffer.concat([rest, data]);
    const messages: Buffer[] = [];
    while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
      const end = rest.readInt32BE(1) + 1;
      messages.push(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
    return messages;
  };
}
