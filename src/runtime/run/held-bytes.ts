import { payloadField } from "../../model/execution/event-payload.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";

/** The memory of a run besides its values: closures, promises, a few maps. */
const bareRunBytes = 4_000;
/** The memory of an event besides its value. */
const bareEventBytes = 200;
/** The memory of an object, a property or an item besides its content. */
const partBytes = 16;
/** The most parts of one value that are measured; the rest is assumed to be like them. */
const partsMax = 10_000;

/** About the number of bytes that a run holds once its code has been given all of this. */
export function loadedBytes({ input, history, responses, unreadSignals }: LoadedExecution): number {
  let bytes = bareRunBytes + roughBytes(input);
  for (const { event } of history) {
    const field = payloadField(event.kind);
    bytes += bareEventBytes;
    if (field !== undefined)
      bytes += roughBytes((event as unknown as Record<string, unknown>)[field]);
  }
  for (const { response } of responses) bytes += roughBytes(response);
  for (const { response } of unreadSignals) bytes += roughBytes(response);
  return bytes;
}

/** About the number of bytes of a value: enough to tell kilobytes from megabytes. */
export function roughBytes(value: unknown): number {
  if (typeof value === "string") return partBytes + value.length;
  if (typeof value !== "object") return partBytes;
  let bytes = 0;
  let parts = 0;
  let passedOver = 0;
  const left: unknown[] = [value];
  while (left.length > 0) {
    const part = left.pop();
    parts += 1;
    bytes += partBytes;
    if (typeof part === "string") bytes += part.length;
    else if (part instanceof Uint8Array) bytes += part.byteLength;
    else if (typeof part === "object" && part !== null)
      for (const inner of innerParts(part))
        if (parts + left.length < partsMax) left.push(inner);
        else passedOver += 1;
  }
  return (bytes / parts) * (parts + passedOver);
}

function innerParts(part: object): Iterable<unknown> {
  if (Array.isArray(part) || part instanceof Set) return part as Iterable<unknown>;
  if (part instanceof Map) return (part as Map<unknown, unknown>).entries();
  return Object.values(part) as readonly unknown[];
}
