import type { Tx } from "../../sql/operation.ts";
import { clearLease } from "./lease-row.ts";

/** Ends the lease of a session that is being deleted. The fence stays, so that none is ever given out twice. */
export function* forgetLease(sessionKey: number): Tx<number> {
  return yield* clearLease(sessionKey);
}
