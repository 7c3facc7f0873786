import { coreTypes, endTypes } from "./event-type.ts";
import { signalType } from "./process.ts";

/**
 * The replay keys of the registry's own events. Callers' keys share a column with them, so a
 * caller's key must not start like one of these.
 */
export const registryKeys = {
  end: (type: string): string => `process:terminal:${type}`,
  cancelRequest: (hash: string): string => `process:cancel_requested:${hash}`,
  /** One per lease. */
  start: (fence: number): string => `process:started:${fence}`,
  /** One per process, so that a second reference finds the first. */
  externalRef: "process:external_ref",
  signal: (name: string, key: string): string => `signal:${name}:${key}`,
} as const;

/**
 * True for a key of the registry that does not belong to this event. A caller's event under it
 * would block the event that belongs there.
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
