import { HoldfastError } from "../../model/errors.ts";

/** Errors of a move that cannot continue. They show no URL, since a URL may hold a password. */

export function targetNotEmpty(tables: readonly string[]): HoldfastError {
  return new HoldfastError(
    "TARGET_NOT_EMPTY",
    `The target has data already (${tables.slice(0, 5).join(", ")}${tables.length > 5 ? ", …" : ""}), and a move would mix two histories. ` +
      "Name an empty database, or another schema of this one with --schema. Nothing was changed.",
    { tables },
  );
}

export function moveElsewhere(): HoldfastError {
  return new HoldfastError(
    "MOVE_ELSEWHERE",
    "The move of this file was started with another target, which may hold its data. Continue the move or give it up with the URL and schema of that target. " +
      "If that database is gone for good, --give-up --force makes the file usable again.",
  );
}

export function moveArrived(): HoldfastError {
  return new HoldfastError(
    "MOVE_ARRIVED",
    "The move can no longer be given up: everything has arrived in the target, where runs may have continued since. " +
      "Run the same command without --give-up to finish it, and restart your program with the URL of the target.",
  );
}

export function moveNotBegun(): HoldfastError {
  return new HoldfastError(
    "MOVE_NOT_BEGUN",
    "This file is not being moved, so there is nothing to give up. It can be used as it is.",
  );
}

/** Another process gave the move up between two of its transactions. */
export function moveGivenUp(): HoldfastError {
  return new HoldfastError(
    "MOVE_UNDER_WAY",
    "Another process gave this move up or started another one. Nothing was copied; run the command again.",
  );
}

export function moveMismatch(
  table: string,
  found: { readonly rows: number; readonly sum: string },
  expected: { readonly rows: number; readonly sum: string },
): HoldfastError {
  return new HoldfastError(
    "MOVE_MISMATCH",
    `The target's rows of ${table} differ from the source's (${found.rows} rows, expected ${expected.rows}). ` +
      "None of the copy was kept. Check the target's holdfast_* tables for triggers or rules. Then run the command again, or give the move up with --give-up.",
    { table, found, expected },
  );
}

/** Checked between slices. @throws HoldfastError `ABORTED` */
export function refuseAborted(signal: AbortSignal | undefined, isBegun: boolean): void {
  if (signal?.aborted !== true) return;
  throw new HoldfastError(
    "ABORTED",
    isBegun
      ? "The move was interrupted. None of the copy was kept in the target, and the file refuses writes until the move ends: " +
          "run the same command again to copy from the start, or add --give-up to use the file as before."
      : "The move was interrupted before it started; nothing was changed.",
    { isBegun },
    { cause: signal.reason },
  );
}
