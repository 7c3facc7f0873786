import { monotonicMs } from "../../host/timers.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import type { Isolation } from "../../sql/isolation.ts";
import { checkParameters } from "../../sql/parameters.ts";
import type { Statement } from "../../sql/statement.ts";
import { startSession } from "./driver.ts";
import type { Driver, DriverSession } from "./driver.ts";
import { connectFailure, connectionLost, noAnswer, statementFailure } from "./failures.ts";
import { asLiteral } from "./qualified.ts";
import type { TemplateTexts } from "./qualified.ts";
import type { SessionTexts } from "./session-texts.ts";
import { AnswerLimit } from "./silence/answer-limit.ts";
import type { AnswerRules } from "./silence/answer-limit.ts";
import type { Backend } from "./silence/backend-states.ts";
import { bound, checkRows } from "./values.ts";
import { Wire } from "./wire.ts";

/** The server's address and the first texts to send. Holds the URL, so it is never shown. */
export interface Target {
  readonly driver: Driver;
  readonly url: string;
  readonly prepare: boolean;
  readonly texts: SessionTexts;
  readonly templates: TemplateTexts;
  /** The limits of the server's silence; absent for the connection that inquires about others. */
  readonly answers?: AnswerRules;
}

/** The identity of a session, from its first answer. */
interface Identity {
  readonly pid: number | null;
  readonly since: string | null;
}

/** Events of a connection. */
export interface ConnectionEvents {
  readonly onNotify?: (payload: string) => void;
  readonly onLost?: () => void;
}

/** Rows of a text's last query, and the tag of its last command. */
type ControlResult = readonly object[] & {
  readonly command: string;
  /** The process id by which the server, or a pooler before it, would cancel a statement. */
  readonly state: { readonly pid: number } | null;
};

interface Answer {
  readonly rows: readonly object[];
  readonly count: number;
}

/** A user's transaction, and the number of its reruns because of locks. */
export interface UserTransaction {
  readonly isolation: Isolation;
  readonly lockReruns: number;
}

/** The purpose of a transaction and its author, which decide how it begins. */
export type TransactionKind = "read" | "write" | "set" | UserTransaction;

/**
 * One session with the server. Statements go one at a time. After the first sign of a broken
 * connection none is sent, because the driver would hang or run it elsewhere.
 */
export class Connection {
  readonly #session: DriverSession;
  readonly #wire: Wire;
  #texts: SessionTexts;
  readonly #templates: TemplateTexts;
  readonly #isOwnSession: boolean;
  readonly #answers: AnswerRules | undefined;
  readonly #limit: AnswerLimit | undefined;
  #access: "read" | "write" = "write";
  #lost = false;
  #backend: Backend | undefined;
  #isPooled = false;
  #departure: Promise<void> | undefined;
  #askedMs = 0;
  #answeredMs = 0;
  /** Settles when the server has answered the beginning of a read. */
  #begun: Promise<HoldfastError | undefined> | undefined;
  /** The first statement failure of the current transaction. */
  failure: HoldfastError | undefined;

  /**
   * Opens a connection; gives up when the signal aborts.
   * @throws HoldfastError with the codes of docs/errors.md under "Opening".
   */
  static async open(
    target: Target,
    events: ConnectionEvents = {},
    signal?: AbortSignal,
  ): Promise<Connection> {
    const connection = new Connection(target, events);
    const giveUp = (): void => connection.discard();
    signal?.addEventListener("abort", giveUp, { once: true });
    try {
      const identified = await Promise.race([
        connection.#answered(target.texts.hello, () =>
          connection.#session(constant(target.texts.hello)).simple(),
        ),
        connection.#wire.failed,
      ]);
      connection.#settle(identified);
      connection.#wish(target.texts);
      return connection;
    } catch (error) {
      connection.discard();
      throw connection.#departure === undefined ? connectFailure(error) : connection.#noAnswer();
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  private constructor(target: Target, events: ConnectionEvents) {
    const wire = new Wire();
    this.#wire = wire;
    this.#texts = target.texts;
    this.#templates = target.templates;
    this.#isOwnSession = target.prepare;
    this.#answers = target.answers;
    this.#limit =
      target.answers &&
      new AnswerLimit(
        target.answers,
        () => wire.bytesRead,
        () => this.abandon(),
      );
    this.#session = startSession(target.driver, target.url, {
      prepare: target.prepare,
      socket: wire.open.bind(wire),
      onclose: () => {
        this.discard();
        events.onLost?.();
      },
      onnotify: (_, payload) => events.onNotify?.(payload),
    });
  }

  get isLost(): boolean {
    return this.#lost;
  }

  /**
   * True when a pooler stands between us and the server. A pooler answers with its own process id.
   */
  get isPooled(): boolean {
    return this.#isPooled;
  }

  /** Our backend on the server, if the session is not shared. */
  get backend(): Backend | undefined {
    return this.#backend;
  }

  /**
   * Set once the connection was ended for its silence. Resolves when the server has dropped the
   * session.
   */
  get departure(): Promise<void> | undefined {
    return this.#departure;
  }

  /**
   * True when the server has answered here since the last statement of another connection was sent.
   */
  hasAnsweredSince(other: Connection): boolean {
    return this.#answeredMs > other.#askedMs;
  }

  /**
   * Runs a statement.
   * @throws HoldfastError, which is also remembered as the transaction's failure.
   */
  async query(statement: Statement): Promise<Answer> {
    const { template, parameters } = statement;
    try {
      checkParameters(statement);
      if (this.#lost) throw connectionLost();
      if (template.isScript) {
        await this.#answered(template.postgres, () =>
          this.#session(asLiteral([template.postgres])).simple(),
        );
        return { rows: [], count: 0 };
      }
      const result = await this.#answered(template.postgres, () =>
        this.#session(this.#templates.literalOf(template), ...parameters.map(bound)),
      );
      checkRows(result, result.columns);
      return {
        rows: result.slice(),
        count: template.counts ? result.count : 0,
      };
    } catch (error) {
      throw this.#failed(error, template.postgres);
    }
  }

  async begin(kind: Exclude<TransactionKind, "read">): Promise<void> {
    this.failure = undefined;
    this.#access = "write";
    await this.#control(this.#beginning(kind));
  }

  /**
   * Begins a read without awaiting the answer, since the first statement follows at once. A write
   * awaits its beginning, because a statement outside the transaction would commit.
   */
  beginRead(): void {
    this.failure = undefined;
    this.#access = "read";
    const text = this.#texts.begin.read;
    this.#begun = this.#session(constant(text))
      .simple()
      .then(
        () => undefined,
        (error: unknown) => this.#failed(error, text),
      );
  }

  /** The reason why the server refused to begin the read, whose statements then had no snapshot. */
  async readRefusal(): Promise<HoldfastError | undefined> {
    return this.#begun;
  }

  /**
   * True when a statement outside a transaction has our settings. Behind a pooler only transactions
   * have them.
   */
  get takesLoneStatements(): boolean {
    return this.#texts.configuresSession;
  }

  /** Runs a statement that the server commits by itself, as `query` does. */
  async queryLone(statement: Statement): Promise<Answer> {
    this.failure = undefined;
    this.#access = "write";
    return this.query(statement);
  }

  #beginning(kind: TransactionKind): string {
    const { begin, beginForUser } = this.#texts;
    if (typeof kind === "string") return begin[kind];
    const texts = beginForUser[kind.isolation];
    return texts[Math.min(kind.lockReruns, texts.length - 1)] ?? begin.write;
  }

  async rollback(): Promise<void> {
    await this.#control("ROLLBACK");
  }

  /** Commits. Returns the transaction's id, or undefined when it wrote nothing. */
  async commit(): Promise<number | undefined> {
    const result = await this.#control("SELECT pg_current_xact_id_if_assigned() AS tx; COMMIT");
    assertCommitted(result);
    const [found] = result as readonly { readonly tx?: number | null }[];
    return found?.tx ?? undefined;
  }

  /** Runs session control outside transactions, e.g. LISTEN. */
  async command(text: string): Promise<void> {
    await this.#control(text);
  }

  /**
   * The rows of our own text without parameters. With parameters, a statement new to the session
   * takes two round trips.
   */
  async ask(text: string): Promise<readonly object[]> {
    return this.#control(text);
  }

  /** Says goodbye and waits until the server has ended the session. */
  async end(): Promise<void> {
    this.#lost = true;
    this.#limit?.stop();
    await this.#session.end({ timeout: 1 });
    this.#wire.cut();
  }

  /** Cuts the connection. The server rolls back any open transaction of the session. */
  discard(): void {
    this.#lost = true;
    this.#limit?.stop();
    this.#wire.cut();
    this.#session.end({ timeout: 0 }).catch(() => undefined);
  }

  /**
   * Cuts a silent connection. The server may not notice, so the session may stay there for a while.
   */
  abandon(): void {
    if (this.#departure !== undefined) return;
    this.#departure =
      this.#backend === undefined || this.#answers === undefined
        ? Promise.resolve()
        : this.#answers.inquiry.departure(this.#backend);
    this.discard();
  }

  /** Sends the first texts to a session that was opened with other texts. */
  async introduce(texts: SessionTexts): Promise<void> {
    await this.#control(texts.hello);
    this.#texts = texts;
    this.#wish(texts);
  }

  #wish({ wish }: SessionTexts): void {
    // The answer is not awaited: the next statement is sent at once.
    if (wish !== undefined)
      this.#session(constant(wish))
        .simple()
        .catch(() => undefined);
  }

  #settle(identified: ControlResult): void {
    this.#wire.settle();
    const [found] = identified as readonly Identity[];
    this.#isPooled = found?.pid !== identified.state?.pid;
    const isOurs = this.#isOwnSession || !this.#isPooled;
    if (isOurs && typeof found?.pid === "number" && typeof found.since === "string")
      this.#backend = { pid: found.pid, since: found.since };
    this.#limit?.settle(this.#backend);
  }

  async #answered<T>(text: string, ask: () => PromiseLike<T>): Promise<T> {
    this.#limit?.asked(text);
    this.#askedMs = monotonicMs();
    try {
      return await ask();
    } finally {
      this.#limit?.answered();
      if (!this.#lost) this.#answeredMs = monotonicMs();
    }
  }

  async #control(text: string): Promise<ControlResult> {
    try {
      if (this.#lost) throw connectionLost();
      return await this.#answered(text, () => this.#session(constant(text)).simple());
    } catch (error) {
      throw this.#failed(error, text);
    }
  }

  #failed(error: unknown, text: string): HoldfastError {
    const told = isHoldfastError(error) ? error : statementFailure(error, this.#access, text);
    const isLost = told.code === "CONNECTION_LOST";
    const failure = isLost && this.#departure !== undefined ? this.#noAnswer() : told;
    this.failure ??= failure;
    if (isLost) this.discard();
    return failure;
  }

  #noAnswer(): HoldfastError {
    return noAnswer(this.#answers?.timeoutMs ?? 0);
  }
}

/**
 * Checks the answer to COMMIT. The server answers ROLLBACK when a statement had failed, and then
 * `Fate` does not commit at all.
 */
function assertCommitted({ command }: ControlResult): void {
  if (command === "COMMIT") return;
  throw new HoldfastError(
    "BATCH_ROLLED_BACK",
    `The server answered COMMIT with ${command}, so this call stored nothing. Retry it.`,
    { command },
  );
}

const constants = new Map<string, TemplateStringsArray>();

/** Literals of our few texts without parameters; see `TemplateTexts.literalOf` for the reason. */
function constant(text: string): TemplateStringsArray {
  let literal = constants.get(text);
  if (literal === undefined) constants.set(text, (literal = asLiteral([text])));
  return literal;
}
