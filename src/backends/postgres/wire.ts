import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { later } from "../../host/timers.ts";

/** The server's address, as the driver read it from the URL. */
interface Address {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path: string | false | undefined;
}

const connectMsMax = 10_000;

/**
 * The one socket under a session. We open it, so that we can cut it, and so that there is never a
 * second one. The driver reconnects by itself, which would put the rest of a transaction on a
 * session that knows nothing about it.
 */
export class Wire {
  /** Rejects when no socket can be opened: with several hosts the driver would wait forever. */
  readonly failed: Promise<never>;
  #fail: (error: unknown) => void = () => undefined;
  #socket: Socket | undefined;
  /** The number of hosts tried so far. */
  #tried = 0;
  #isSettled = false;

  constructor() {
    this.failed = new Promise((_, reject) => (this.#fail = reject));
    this.failed.catch(() => undefined);
  }

  /** Called by the driver when it wants a socket, and again when the last one failed. */
  async open(address: Address): Promise<Socket> {
    try {
      return await this.#reach(address);
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  /** Records that the session is set up. From now on a closed socket is not replaced. */
  settle(): void {
    this.#isSettled = true;
  }

  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }

  cut(): void {
    this.#isSettled = true;
    this.#fail(lost());
    // Only an error ends the wait for a socket that is not connected yet.
    this.#socket?.destroy(this.#socket.connecting ? lost() : undefined);
  }

  /** Connects to the next host that answers. */
  async #reach({ host, port, path }: Address): Promise<Socket> {
    let refusal: unknown = lost();
    while (!this.#isSettled && this.#tried < host.length) {
      const name = host[this.#tried] ?? "localhost";
      const number = port[this.#tried] ?? 5432;
      this.#tried += 1;
      try {
        this.#socket =
          typeof path === "string"
            ? connect({ path })
            : connect({ host: name, port: number, noDelay: true });
        // Calls and waits keep the process alive, not their connection.
        this.#socket.unref();
        // The driver checks the certificate against this name.
        return Object.assign(await connected(this.#socket), { host: name });
      } catch (error) {
        refusal = error;
      }
    }
    throw refusal;
  }
}

async function connected(socket: Socket): Promise<Socket> {
  const timedOut = Object.assign(new Error("timed out"), { code: "ETIMEDOUT" });
  const cancel = later(connectMsMax, () => socket.destroy(timedOut));
  try {
    await once(socket, "connect");
    return socket;
  } finally {
    cancel();
  }
}

function lost(): Error {
  return Object.assign(new Error("lost"), { code: "CONNECTION_CLOSED" });
}
