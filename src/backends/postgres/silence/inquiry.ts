import { doze, later } from "../../../host/timers.ts";
import { isHoldfastError } from "../../../model/errors.ts";
import type { Connection } from "../connection.ts";
import { AnswerWatch, stepOf } from "./answer-watch.ts";
import { statesText, terminateText } from "./backend-states.ts";
import type { Backend, BackendState } from "./backend-states.ts";

/**
 * "refused": the server refuses the asker, so nothing is known. "unanswered": the asker gets no
 * answer either.
 */
export type Finding = BackendState | { readonly kind: "refused" | "unanswered" };

/**
 * The number of time limits after which an ended session counts as gone from the server: a minute
 * by default.
 */
const timeoutsUntilGone = 6;

interface Question {
  readonly backend: Backend;
  readonly resolve: (finding: Finding) => void;
}

interface Departure {
  readonly backend: Backend;
  readonly gone: () => void;
}

const pauseMsMin = 20;

/**
 * Asks the server, over its own connection, about the backends of silent connections, and makes
 * sure that backends of ended connections go away. There is at most one such connection, open only
 * while there is something to ask.
 */
export class Inquiry {
  readonly #open: (signal: AbortSignal) => Promise<Connection>;
  readonly #timeoutMs: number;
  readonly #closing = new AbortController();
  #questions: Question[] = [];
  readonly #departures = new Set<Departure>();
  #isWorking = false;
  #asker: Connection | undefined;
  #wake = new AbortController();

  constructor(open: (signal: AbortSignal) => Promise<Connection>, timeoutMs: number) {
    this.#open = open;
    this.#timeoutMs = timeoutMs;
  }

  look(backend: Backend): Promise<Finding> {
    return new Promise((resolve) => {
      this.#questions.push({ backend, resolve });
      this.#start();
    });
  }

  /** Resolves once the backend of an ended connection is gone or counts as gone. */
  departure(backend: Backend): Promise<void> {
    return new Promise((resolve) => {
      const departure = {
        backend,
        gone: (): void => {
          cancel();
          this.#departures.delete(departure);
          resolve();
        },
      };
      const cancel = later(this.#timeoutMs * timeoutsUntilGone, () => departure.gone());
      this.#departures.add(departure);
      this.#start();
    });
  }

  /** Stops asking, and answers all waiting requests. */
  close(): void {
    this.#closing.abort();
    this.#wake.abort();
    this.#asker?.discard();
    for (const { resolve } of this.#questions.splice(0)) resolve({ kind: "refused" });
    for (const { gone } of this.#departures) gone();
  }

  #start(): void {
    if (this.#closing.signal.aborted) return this.close();
    this.#wake.abort();
    if (this.#isWorking) return;
    this.#isWorking = true;
    void this.#work().finally(() => {
      this.#isWorking = false;
      if (this.#questions.length > 0 || this.#departures.size > 0) this.#start();
    });
  }

  async #work(): Promise<void> {
    let pauseMs = pauseMsMin;
    while (this.#questions.length > 0 || this.#departures.size > 0) {
      if (this.#questions.length > 0) pauseMs = pauseMsMin;
      this.#wake = new AbortController();
      await this.#round();
      if (this.#questions.length > 0 || this.#departures.size === 0) continue;
      await doze(pauseMs, this.#wake.signal);
      pauseMs = Math.min(2 * pauseMs, stepOf(this.#timeoutMs));
    }
    await this.#asker?.end();
    this.#asker = undefined;
  }

  async #round(): Promise<void> {
    const questions = this.#questions.splice(0);
    const departures = [...this.#departures];
    try {
      const found = await this.#inTime((asker) => this.#states(asker, questions, departures));
      for (const { backend, resolve } of questions) resolve(found(backend));
      for (const { backend, gone } of departures) if (found(backend).kind === "gone") gone();
    } catch (error) {
      this.#loseAsker();
      for (const { resolve } of questions) resolve({ kind: whyOf(error) });
    }
  }

  async #states(
    asker: Connection,
    questions: readonly Question[],
    departures: readonly Departure[],
  ): Promise<(backend: Backend) => BackendState> {
    const leaving = departures.map(({ backend }) => backend);
    // A role that may not end its own sessions waits until they end by themselves.
    if (leaving.length > 0) await asker.ask(terminateText(leaving)).catch(() => undefined);
    const backends = [...questions.map(({ backend }) => backend), ...leaving];
    const rows = await asker.ask(statesText(backends));
    return (backend) =>
      (rows as readonly (Backend & BackendState)[]).find(
        ({ pid, since }) => pid === backend.pid && since === backend.since,
      ) ?? { kind: "gone" };
  }

  /** Cuts the asker when connecting and asking together exceed the time limit. */
  async #inTime<T>(work: (asker: Connection) => Promise<T>): Promise<T> {
    const giveUp = new AbortController();
    const close = (): void => giveUp.abort();
    this.#closing.signal.addEventListener("abort", close);
    const watch = new AnswerWatch(this.#timeoutMs, zero, () => {
      giveUp.abort();
      this.#asker?.discard();
    });
    watch.asked();
    try {
      this.#asker ??= await this.#open(giveUp.signal);
      return await work(this.#asker);
    } finally {
      watch.stop();
      this.#closing.signal.removeEventListener("abort", close);
    }
  }

  /** Discards the asker. The next asker ends its backend, if it still exists. */
  #loseAsker(): void {
    const lost = this.#asker;
    this.#asker = undefined;
    lost?.discard();
    if (lost?.backend !== undefined) void this.departure(lost.backend);
  }
}

function zero(): number {
  return 0;
}

/**
 * The reason why nothing was learned. A server that refuses the asker says nothing about the
 * backend.
 */
function whyOf(error: unknown): "refused" | "unanswered" {
  if (!isHoldfastError(error)) return "unanswered";
  const { code, details } = error;
  if (code === "CONNECTION_LOST") return "unanswered";
  return code !== "DATABASE_UNREACHABLE" || details["reason"] === "53300"
    ? "refused"
    : "unanswered";
}
