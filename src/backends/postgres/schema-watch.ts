import { later } from "../../host/timers.ts";
import type { HoldfastError } from "../../model/errors.ts";
import { newerSchema } from "./schema.ts";
import type { ServiceSession } from "./service-session.ts";

const everyMsMax = 60_000;
/** The number of polls per look, because migrations are rare. */
const pollsPerLook = 10;

/**
 * Looks now and then whether a newer version has migrated the open database. This version does not
 * know the new rules, so all writes stop for good: a schema never goes back.
 */
export class SchemaWatch {
  readonly #session: ServiceSession;
  readonly #everyMs: number;
  readonly #onNewer: (refusal: HoldfastError) => void;
  #cancel: (() => void) | undefined;

  constructor(session: ServiceSession, pollMs: number, onNewer: (refusal: HoldfastError) => void) {
    this.#session = session;
    this.#everyMs = Math.min(pollMs * pollsPerLook, everyMsMax);
    this.#onNewer = onNewer;
  }

  start(): void {
    this.#cancel = later(this.#everyMs, () => void this.#look());
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  async #look(): Promise<void> {
    const refusal = await this.#session
      .use(newerSchema)
      // The server is away, so no process writes either.
      .catch(() => undefined);
    if (refusal !== undefined) this.#onNewer(refusal);
    else if (this.#cancel !== undefined) this.start();
  }
}
