import { Socket, connect, createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { once } from "node:events";
import { Place, urlWith } from "./place.ts";

interface Address {
  readonly host: string;
  readonly port: number;
}

/** When to cut a connection over which something is said. */
type CutAt = "before the server hears it" | "before the client hears the answer";

/** A cable between a database and its server, with somebody to pull it. */
export class Cable {
  readonly #server: Server;
  readonly #target: Address;
  readonly #pairs = new Set<Pair>();
  #port = 0;
  #cut: { readonly words: string; readonly at: CutAt } | undefined;
  #garble: { readonly words: string; readonly as: string } | undefined;
  #silence: { readonly words: string; readonly at: "before" | "after" } | undefined;
  #isFrozen = false;
  /** Connections that were cut for what they said. */
  cuts = 0;
  /** Messages that arrived as something else. */
  garbled = 0;

  static async to(url: string): Promise<Cable> {
    const { hostname, port } = new URL(url);
    const cable = new Cable({ host: hostname, port: Number(port) });
    await cable.plugIn();
    return cable;
  }

  private constructor(target: Address) {
    this.#target = target;
    this.#server = createServer((client) => this.#carry(client));
  }

  urlFor(url: string): string {
    return urlWith((parsed) => (parsed.port = String(this.#port)), url);
  }

  /** Cuts the next connection over which the client says these words. */
  cutAt(words: string, at: CutAt): void {
    this.#cut = { words, at };
  }

  /** Silences the next connection over which the client says these words; the server does not hear them. */
  silenceAt(words: string): void {
    this.#silence = { words, at: "before" };
  }

  /** The same, except that these words are the last that the server hears. */
  silenceAfter(words: string): void {
    this.#silence = { words, at: "after" };
  }

  /**
   * From now on the server hears something else of the same length instead of
   * these words: how to have it refuse what it would never refuse.
   */
  garble(words: string, as: string): void {
    if (words.length !== as.length) throw new Error("Lengths must be equal.");
    this.#garble = { words, as };
  }

  /** Falls silent for good: nothing arrives any more, and nobody is told. New connections are made and say nothing. */
  freeze(): void {
    this.#isFrozen = true;
    for (const pair of this.#pairs) pair.pause();
  }

  /**
   * Forgets the connections of now, as a balancer may: they stay open and carry
   * nothing, not even their end. New ones work. The returned function lets the
   * old ones carry again, what was held up included.
   */
  silence(): () => void {
    const silenced = [...this.#pairs];
    for (const pair of silenced) pair.pause();
    return () => {
      for (const pair of silenced) pair.resume();
    };
  }

  /** Carries connections again that are made from now on. */
  thaw(): void {
    this.#isFrozen = false;
  }

  /** Cuts all connections and refuses new ones. */
  async unplug(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const pair of this.#pairs) pair.cut();
    await closed;
  }

  async plugIn(): Promise<void> {
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  #carry(client: Socket): void {
    if (this.#isFrozen) {
      client.pause().on("error", () => undefined);
      return void this.#pairs.add(new Pair(client, new Socket()));
    }
    const server = connect({ ...this.#target, noDelay: true });
    const pair = new Pair(client, server);
    this.#pairs.add(pair);
    client.on("data", (data) => {
      if (this.#silenced(pair, data)) return;
      const cut = this.#cut;
      if (cut === undefined || !data.includes(cut.words))
        return void server.write(this.#heard(data));
      this.#cut = undefined;
      this.cuts += 1;
      if (cut.at === "before the server hears it") return pair.cut();
      pair.isDeaf = true;
      // Whatever it answers, it has done it.
      server.once("data", () => pair.cut());
      server.write(data);
    });
    server.on("data", (data) => {
      if (!pair.isDeaf) client.write(data);
    });
    for (const socket of [client, server])
      socket.on("close", () => this.#drop(pair)).on("error", () => undefined);
  }

  #silenced(pair: Pair, data: Buffer): boolean {
    const silence = this.#silence;
    if (silence !== undefined && data.includes(silence.words)) {
      this.#silence = undefined;
      pair.isMute = true;
      if (silence.at === "after") pair.say(data);
      else pair.pause();
    }
    return pair.isMute;
  }

  #heard(data: Buffer): Buffer {
    const garble = this.#garble;
    if (garble === undefined || !data.includes(garble.words)) return data;
    this.garbled += 1;
    const said = data.toString("latin1");
    return Buffer.from(said.replaceAll(garble.words, garble.as), "latin1");
  }

  #drop(pair: Pair): void {
    pair.cut();
    this.#pairs.delete(pair);
  }
}

class Pair {
  readonly #client: Socket;
  readonly #server: Socket;
  /** The client is told nothing more. */
  isDeaf = false;
  /** The server hears nothing more. */
  isMute = false;

  constructor(client: Socket, server: Socket) {
    this.#client = client;
    this.#server = server;
  }

  say(data: Buffer): void {
    this.#server.write(data);
  }

  pause(): void {
    this.#client.pause();
    this.#server.pause();
  }

  resume(): void {
    this.#client.resume();
    this.#server.resume();
  }

  cut(): void {
    this.#client.destroy();
    this.#server.destroy();
  }
}

/** A place of one's own with a cable to its server. */
export async function withCable(
  body: (place: Place, cable: Cable) => Promise<void>,
): Promise<void> {
  const place = await Place.prepared();
  const cable = await Cable.to(place.url);
  try {
    await body(place, cable);
  } finally {
    try {
      await place.close();
    } finally {
      // Sessions at the end of a frozen cable may still hold locks: the server must see them end before it empties their schema.
      await cable.unplug().catch(() => undefined);
      await place.dispose();
    }
  }
}
