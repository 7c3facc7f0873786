import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import type { LeaseOwner } from "../../model/lease.ts";
import { parseOwnerId } from "../../model/prefixed-id.ts";
import type { OwnerId } from "../../model/prefixed-id.ts";
import { checkedText, givenObject, optionsOf } from "../../model/shape.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import { waitNames } from "../given.ts";
import { checkedInterval } from "../renewing.ts";

/** Who asks for a lease: the host's own name, and this start of it. */
export interface LeaseClaimant {
  readonly owner: string;
  readonly incarnation: string;
  /** Whose death ends the lease: this process unless told. `null` lets only time end it. */
  readonly process?: OwnerId | null;
}

export interface LeaseOptions extends WaitOptions {
  /** For how long: 30 seconds unless told. */
  readonly ttl?: Duration;
}

export interface LeaseKeepOptions {
  /** For how long it is extended each time: 30 seconds unless told. */
  readonly ttl?: Duration;
  /** How often: a third of that unless told, and never less often. */
  readonly every?: Duration;
}

const ttlDefault: Duration = "30s";

export function ttlOf(options: LeaseOptions | undefined): number {
  const { ttl = ttlDefault } = optionsOf(options, [...waitNames, "ttl"]);
  return durationMs(ttl, "ttl");
}

/** @throws HoldfastError `OPTION_INVALID` when `every` is more than a third of `ttl`. */
export function checkedRhythm(options: LeaseKeepOptions | undefined): {
  readonly ttlMs: number;
  readonly everyMs: number;
} {
  const { ttl = ttlDefault, every } = optionsOf(options, ["ttl", "every"]);
  const ttlMs = durationMs(ttl, "ttl");
  const everyMs =
    every === undefined ? Math.floor(ttlMs / 3) : durationMs(every, "every");
  return { ttlMs, everyMs: checkedInterval(ttlMs, everyMs) };
}

/** @throws HoldfastError `NAME_INVALID`, `ID_MALFORMED` */
export function ownerOf(
  database: Database,
  claimant: LeaseClaimant,
): LeaseOwner {
  const {
    owner,
    incarnation,
    process = database.owner,
  } = givenObject("claimant", claimant);
  return {
    owner: checkedText("An owner", owner),
    incarnation: checkedText("An incarnation", incarnation),
    process: process === null ? null : parseOwnerId(process),
  };
}

export function waitOf({ signal, timeout }: WaitOptions = {}): WaitOptions {
  return { signal, timeout };
}
