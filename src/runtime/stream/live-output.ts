/** The output of a run that a reader gets. Each but `end` has a cursor from which another reader continues. */
export type LiveOutput =
  | {
      readonly kind: "chunk";
      readonly cursor: string;
      /** When it was shown, to within the time between two writes. */
      readonly at: number;
      /** The id of the run: of a child, if the reader asked for children. */
      readonly run: string;
      /** The name of the step; undefined for an activity. */
      readonly step: string | undefined;
      readonly attempt: number;
      readonly value: unknown;
    }
  /** A newer attempt of the step begins to show values: those of older attempts no longer count. */
  | {
      readonly kind: "superseded";
      readonly cursor: string;
      readonly run: string;
      readonly step: string | undefined;
    }
  /** Values are missing here: they were dropped, removed, or lost in a crash. */
  | { readonly kind: "gap"; readonly cursor: string; readonly run: string }
  /** The run has ended, and its last value has been read. */
  | { readonly kind: "end" };

/** Options of a reader of live output. */
export interface StreamOptions {
  /** The cursor of the last output that was read. Defaults to the beginning. */
  readonly after?: string;
  /** Also reads the output of all runs below it. Defaults to false. */
  readonly children?: boolean;
  /** Ends the reading with `ABORTED`. */
  readonly signal?: AbortSignal;
}
