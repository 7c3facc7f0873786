import type { Clock } from "../time/clock.ts";
import type { Entropy } from "../entropy.ts";
import type { ExecutionId } from "./execution-id.ts";
import type { DeploymentId, ExecutorId, OwnerId, RunId } from "./prefixed-id.ts";
import { encodeUlid, ulidRandomBytes } from "./ulid.ts";

/**
 * The ids that can be minted, by prefix. Delay ids are missing because they are always derived from
 * the waiting execution (delay-id.ts).
 */
interface IdByPrefix {
  readonly E: ExecutionId;
  readonly Exr: ExecutorId;
  readonly Run: RunId;
  readonly Dep: DeploymentId;
  readonly Own: OwnerId;
}

export interface IdSource {
  /** Returns a new id such as `E_01ARZ3NDEKTSV4RRFFQ69G5FAV`, greater than all before it. */
  nextId<Prefix extends keyof IdByPrefix>(prefix: Prefix): IdByPrefix[Prefix];
}

/**
 * Mints ids that only grow, even within one millisecond and when the clock is set back: the random
 * part then counts up. That makes neighbours guessable, which is fine, because ids are names and
 * not capabilities.
 */
export function idSource(sources: { readonly clock: Clock; readonly entropy: Entropy }): IdSource {
  const { clock, entropy } = sources;
  let timeMs = -1;
  let random: Uint8Array = new Uint8Array(ulidRandomBytes);
  return {
    nextId<Prefix extends keyof IdByPrefix>(prefix: Prefix) {
      const nowMs = clock.now();
      if (nowMs > timeMs) {
        timeMs = nowMs;
        random = entropy.bytes(ulidRandomBytes);
      } else if (!increment(random)) {
        timeMs += 1;
        random = entropy.bytes(ulidRandomBytes);
      }
      return `${prefix}_${encodeUlid(timeMs, random)}` as IdByPrefix[Prefix];
    },
  };
}

/** Adds one to a big-endian number; false on overflow. */
function increment(bytes: Uint8Array): boolean {
  for (let at = bytes.length - 1; at >= 0; at -= 1) {
    const sum = (bytes[at] ?? 0) + 1;
    bytes[at] = sum;
    if (sum < 256) return true;
  }
  return false;
}
