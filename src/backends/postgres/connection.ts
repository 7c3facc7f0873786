import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import type { Isolation } from "../../sql/isolation.ts";
import { checkParameters } from "../../sql/parameters.ts";
import type { Statement } from "../../sql/statement.ts";
import { startSession } from "./driver.ts";
import type { Driver, DriverSession } from "./driver.ts";
import { connectFailure, connectionLost, statementFailure } from "./failures.ts";
import { asLiteral } from "./qualified.ts";
import type { TemplateTexts } from "./qualified.ts";
import type { SessionTexts } from "./session-texts.ts";
import { bound, checkRows } from "./values.ts";
import { Wire } from "./wire.ts";

/** How to reach the server and what to say first. Holds the URL: never shown. */
export interface Target {
  readonly driver: Driver;
  readonly url: string;
  readonly prepare: boolean;
  readonly texts: SessionTexts;
  readonly templates: TemplateTexts;
}

/** What others want to know of a connection. */
export interface ConnectionEvents {
  readonly onNotify?: (payload: string) => void;
  readonly onLost?: () => void;
}

/** Rows of a text's last query, and the tag of its last command. */
type ControlResult = readonly object[] & { readonly command: string };

interface Answer {
  readonly rows: readonly object[];
  readonly count: number;
}

/** A transaction of a user: how often a lock has made it run again so far. */
export interface UserTransaction {
  readonly isolation: Isolation;
  readonly lockReruns: number;
}

/** What a transaction is for, and whose it is, decides how it begins. */
export type TransactionKind = "read" | "write" | "set" | UserTransaction;

/**
 * One session with the server. Statements go one at a time, and after the
 * first sign of a broken connection none goes at all: the driver would hang
 * or run it elsewhere.
 */
export class Connection {
  readonly #session: DriverSession;
  readonly #wire: Wire;
  readonly #texts: SessionTexts;
  readonly #templates: TemplateTexts;
  #access: "read" | "write" = "write";
  #lost = false;
  /** The first statement failure of the current transaction. */
  failure: HoldfastError | undefined;

  /**
   * Gives up when the signal aborts.
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
      await Promise.race([
        connection.#session(constant(target.texts.hello)).simple(),
        connection.#wire.failed,
      ]);
      connection.#wire.settle();
      const { wish } = target.texts;
      // Nobody waits for the answer: what comes next is on its way meanwhile.
      if (wish !== undefined)
        connection
          .#session(constant(wish))
          .simple()
          .catch(() => undefined);
      return connection;
    } catch (error) {
      connection.discard();
      throw connectFailure(error);
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  private constructor(target: Target, events: ConnectionEvents) {
    const wire = new Wire();
    this.#wire = wire;
    this.#texts = target.texts;
    this.#templates = target.templates;
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

  /** @throws HoldfastError, which is also remembered as the transaction's failure. */
  async query(statement: Statement): Promise<Answer> {
    const { template, parameters } = statement;
    try {
      checkParameters(statement);
      if (this.#lost) throw connectionLost();
      if (template.isScript) {
        await this.#session(asLiteral([template.postgres])).simple();
        return { rows: [], count: 0 };
      }
      const result = await this.#session(
        this.#templates.literalOf(template),
        ...parameters.map(bound),
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

  async begin(kind: TransactionKind): Promise<void> {
    this.failure = undefined;
    this.#access = kind === "read" ? "read" : "write";
    await this.#control(this.#beginning(kind));
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

  /** Commits and tells the transaction's id, or undefined when it wrote nothing. */
  async commit(): Promise<number | undefined> {
    const result = await this.#control("SELECT pg_current_xact_id_if_assigned() AS tx; COMMIT");
    assertCommitted(result);
    const [found] = result as readonly { readonly tx?: number | null }[];
    return found?.tx ?? undefined;
  }

  /** Session control outside transactions, e.g. LISTEN. */
  async command(text: string): Promise<void> {
    await this.#control(text);
  }

  /** The rows of a text of ours without parameters: with them, a statement that is new to the session takes two round trips. */
  async ask(text: string): Promise<readonly object[]> {
    return this.#control(text);
  }

  /** Says goodbye and waits until the server has let go. */
  async end(): Promise<void> {
    this.#lost = true;
    await this.#session.end({ timeout: 1 });
    this.#wire.cut();
  }

  /** Cuts the line; whatever the session was doing is rolled back by the server. */
  discard(): void {
    this.#lost = true;
    this.#wire.cut();
    this.#session.end({ timeout: 0 }).catch(() => undefined);
  }

  async #control(text: string): Promise<ControlResult> {
    try {
      if (this.#lost) throw connectionLost();
      return await this.#session(constant(text)).simple();
    } catch (error) {
      throw this.#failed(error, text);
    }
  }

  #failed(error: unknown, text: string): HoldfastError {
    const failure = isHoldfastError(error) ? error : statementFailure(error, this.#access, text);
    this.failure ??= failure;
    if (failure.code === "CONNECTION_LOST") this.discard();
    return failure;
  }
}

/** The server answers COMMIT with ROLLBACK when a statement had failed; `Fate` knows better than to ask. */
function assertCommitted({ command }: ControlResult): void {
  if (command === "COMMIT") return;
  throw new HoldfastError(
    "BATCH_ROLLED_BACK",
    `The server answered COMMIT with ${command}, so nothing of this call was stored. Try again.`,
    { command },
  );
}

const constants = new Map<string, TemplateStringsArray>();

/** Our own few texts without parameters; see `TemplateTexts.literalOf` for why. */
function constant(text: string): TemplateStringsArray {
  let literal = constants.get(text);
  if (literal === undefined) constants.set(text, (literal = asLiteral([text])));
  return literal;
}
