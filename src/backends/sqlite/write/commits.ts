import type { SqlValue } from "../../../sql/statement.ts";
import type { Connection } from "./connection.ts";
import type { FlushWitness } from "./flusher.ts";

/** A state of the database, identified by the commits that produced it. */
export interface Moment {
  /** Commits of our writer that changed something. */
  readonly own: number;
  /**
   * The writer's `data_version`, which moves with every commit of another connection; undefined
   * when it could not be read.
   */
  readonly others: SqlValue | undefined;
}

/**
 * Knows which state of the database is durable: the one that a successful flush found when it
 * began. Our own commits are counted, because no other source knows of them sooner. The writer
 * reads about commits of others inside its transaction, where that takes no lock. So a lone write
 * pays nothing for information that mostly serves reads, which ask when they need it. Asking
 * another connection after each commit cost 5 µs.
 */
export class Commits implements FlushWitness<Moment> {
  /** The writer. Without a writer it is the reader, for which all commits are foreign. */
  readonly #connection: Connection;
  #own = 0;
  #others: SqlValue | undefined;
  #durable: Moment | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Receives `data_version` inside each of our transactions, until whose end no other connection
   * commits.
   */
  began(others: SqlValue | undefined): void {
    this.#others = others;
  }

  /** Counts a commit of ours that changed something. */
  changed(): void {
    this.#own += 1;
  }

  atCommit(): Moment {
    return { own: this.#own, others: this.#others };
  }

  now(): Moment {
    try {
      this.#others = this.#connection.dataVersion();
    } catch {
      // Most likely busy. The state is unknown, so the caller flushes.
      this.#others = undefined;
    }
    return this.atCommit();
  }

  succeeded(moment: Moment): void {
    this.#durable = moment;
  }

  isDurable({ own, others }: Moment): boolean {
    return others !== undefined && others === this.#durable?.others && own === this.#durable.own;
  }
}
