import { doze } from "../../../host/timers.ts";
import type { Warning } from "../../../sql/database.ts";
import { shortened } from "../../../sql/statement-errors.ts";
import { AnswerWatch, stepOf } from "./answer-watch.ts";
import type { Backend } from "./backend-states.ts";
import type { Finding, Inquiry } from "./inquiry.ts";

/** Rules for all connections of a database. */
export interface AnswerRules {
  readonly timeoutMs: number;
  readonly inquiry: Inquiry;
  readonly warn: (warning: Warning) => void;
}

/**
 * The number of time limits for a statement whose backend cannot be queried: a minute by default.
 */
const timeoutsUnasked = 6;

/**
 * Limits the silence of the server, not the duration of its work. When a statement is overdue,
 * another connection asks about its backend. A working backend is waited for and reported once; any
 * other has its connection ended. While the session is being set up nothing is known about it, so
 * the first time limit ends it.
 */
export class AnswerLimit {
  readonly #rules: AnswerRules;
  readonly #watch: AnswerWatch;
  readonly #end: () => void;
  readonly #stopped = new AbortController();
  #session: { readonly backend: Backend | undefined } | undefined;
  #text = "";
  #isLooking = false;
  #told = 0;

  constructor(rules: AnswerRules, bytesRead: () => number, end: () => void) {
    this.#rules = rules;
    this.#end = end;
    this.#watch = new AnswerWatch(
      rules.timeoutMs,
      bytesRead,
      (timeouts) => void this.#overdue(timeouts),
    );
  }

  /** Records that the session is set up. Behind a pooler it has no backend of its own. */
  settle(backend: Backend | undefined): void {
    this.#session = { backend };
  }

  asked(text: string): void {
    this.#text = text;
    this.#watch.asked();
  }

  answered(): void {
    this.#watch.answered();
  }

  stop(): void {
    this.#watch.stop();
    this.#stopped.abort();
  }

  async #overdue(timeouts: number): Promise<void> {
    if (this.#session === undefined) return this.#end();
    const { backend } = this.#session;
    if (backend === undefined) {
      if (timeouts >= timeoutsUnasked) this.#end();
      return;
    }
    const { pending } = this.#watch;
    if (pending === undefined || this.#isLooking) return;
    this.#isLooking = true;
    const finding = await this.#rules.inquiry.look(backend);
    // An answer that was already on its way still arrives on its own connection.
    if (isOver(finding)) await doze(stepOf(this.#rules.timeoutMs), this.#stopped.signal);
    this.#isLooking = false;
    if (this.#watch.pending !== pending) return;
    if (isOver(finding) || (finding.kind !== "working" && timeouts >= timeoutsUnasked))
      return this.#end();
    if (finding.kind === "working" && this.#told !== pending) {
      this.#told = pending;
      this.#rules.warn(slowAnswer(this.#rules.timeoutMs, backend, finding.waitsFor, this.#text));
    }
  }
}

function isOver({ kind }: Finding): boolean {
  return kind === "quiet" || kind === "gone" || kind === "unanswered";
}

function slowAnswer(timeoutMs: number, { pid }: Backend, waitsFor: string, text: string): Warning {
  const why = waitsFor === "" ? "" : `, waiting for ${waitsFor}`;
  return {
    code: "ANSWER_SLOW",
    message:
      `Postgres has worked on a statement for more than ${timeoutMs} ms (process ${pid}${why}). ` +
      `The call keeps waiting. Check pg_stat_activity and pg_locks: ${shortened(text)}`,
  };
}
