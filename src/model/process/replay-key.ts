import { coreTypes, endTypes } from "./event-type.ts";
import { signalType } from "./process.ts";

/**
 * The replay keys that the registry gives its own events. Callers' keys live
 * beside them in one column, so theirs may not begin as these do.
 */
export const registryKeys = {
  end: (type: string): string => `process:terminal:${type}`,
  cancelRequest: (hash: string): string => `process:cancel_requested:${hash}`,
  /** One for each lease. */
  start: (fence: number): string => `process:started:${fence}`,
  /** One for each process, so that the second one finds the first. */
  externalRef: "process:external_ref",
  signal: (name: string, key: string): string => `signal:${name}:${key}`,
} as const;

/**
 * True for a key of the registry under which it would not record this event:
 * a caller that took it would stand in the way of what belongs there.
 */
export function isForeignKey(
  replayKey: string,
  { type, hash }: { readonly type: string; readonly hash: string },
): boolean {
  if (replayKey.startsWith("signal:")) {
    const name = replayKey.split(":", 2)[1] ?? "";
    return type !== signalType(name) || !replayKey.startsWith(registryKeys.signal(name, ""));
  }
  if (!replayKey.startsWith("process:")) return false;
  if (type === coreTypes.cancelRequested) return replayKey !== registryKeys.cancelRequest(hash);
  return !Object.values(endTypes).includes(type) || replayKey !== registryKeys.end(type);
}
