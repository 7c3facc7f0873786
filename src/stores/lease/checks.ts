import { HoldfastError } from "../../model/errors.ts";
import { isFence } from "../../model/lease.ts";
import type { LeaseHolder } from "../../model/lease.ts";
import { parseOwnerId } from "../../model/prefixed-id.ts";
import { checkedCount, givenObject } from "../../model/shape.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { Lease } from "./acquire.ts";

/**
 * A lease as a caller shows it: all its parts are there. Whether it counts is
 * for the database to say. Nothing of it is repeated in the error.
 *
 * @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED`
 */
export function checkedLease(lease: Lease): Lease {
  const given: unknown = lease;
  if (isFence(given) && isObject((given as Partial<Lease>).session)) {
    sessionNamed(lease.session);
    return lease;
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "Expected a lease as acquire, waitForLease and renew return it, with its session, owner, incarnation, token and fence. Pass that object as it is.",
    { option: "lease" },
  );
}

/** A holder that somebody saw. @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED` */
export function checkedSeen(
  given: Pick<LeaseHolder, "fence" | "process">,
): Pick<LeaseHolder, "fence" | "process"> {
  const { fence, process } = givenObject("observed", given);
  return {
    fence: checkedCount("observed.fence", fence),
    process: process === null ? null : parseOwnerId(process),
  };
}

function isObject(given: unknown): given is object {
  return typeof given === "object" && given !== null;
}
