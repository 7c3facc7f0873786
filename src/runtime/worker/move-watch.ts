import { isHoldfastError } from "../../model/errors.ts";
import type { HoldfastError } from "../../model/errors.ts";
import { refuseMoved } from "../../sql/move-mark.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** The database was moved to Postgres: nothing that a worker tries here can succeed any more. */
function isMoved(error: unknown): error is HoldfastError {
  return isHoldfastError(error) && error.code === "MOVED_TO_POSTGRES";
}

/** Calls the listener when the mark of a move is set, so that a worker with nothing to write notices too. */
export function watchMove(
  { database }: RuntimeContext,
  onMoved: (error: HoldfastError) => void,
): () => void {
  return database.subscribe(
    ({ kind }) => {
      if (kind === "change")
        database
          .read("refuseMoved", () => refuseMoved())
          // A read that failed otherwise says nothing, and a write will tell.
          .catch((error: unknown) => isMoved(error) && onMoved(error));
    },
    [{ operation: "moveDatabase" }],
  );
}
