import { isHoldfastError } from "../../model/errors.ts";
import type { HoldfastError } from "../../model/errors.ts";
import { refuseMoved } from "../../sql/move-mark.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** True if the database was moved to Postgres: no further operation of a worker can succeed here. */
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
          // A read that failed otherwise proves nothing. The next write finds out.
          .catch((error: unknown) => isMoved(error) && onMoved(error));
    },
    [{ operation: "moveDatabase" }],
  );
}
