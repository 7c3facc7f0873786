import type { Done, Tx } from "./operation.ts";
import type { Statement } from "./statement.ts";

/**
 * A whole call as one statement, which Postgres commits by itself. A transaction of as many
 * statements would take a round trip for its beginning, for each statement and for its end.
 */
export interface LoneStatement<O> {
  /**
   * Does everything and returns the id of its transaction as `tx`, or changes nothing and returns
   * no row.
   */
  readonly statement: Statement;
  /** The outcome if it returned a row. */
  readonly value: O;
}

/** A set form of ours that may have a shorter form for a set of one input. */
export interface ManyForm<I, O> {
  (inputs: readonly I[]): Tx<readonly (Done<O> | undefined)[]>;
  /** Undefined for inputs that take more than one statement. */
  readonly lone?: (input: I) => LoneStatement<O> | undefined;
}
