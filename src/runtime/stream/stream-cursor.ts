import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { cursorInvalid, cursorPlace, cursorText, numberAt } from "../../stores/cursor.ts";
import type { StreamPlace } from "../../stores/stream/read.ts";
import type { Places } from "./stream-feed.ts";

/** Cursors of live output: how far a reader has read each run. */

function ownerOf(id: ExecutionId, withChildren: boolean): string {
  return `${withChildren ? "outputs" : "output"} ${id}`;
}

export function cursorOf(id: ExecutionId, withChildren: boolean, places: Places): string {
  const numbers = Array.from(places.values(), ({ execution, runVersion, position }) => [
    execution,
    runVersion,
    position,
  ]);
  return cursorText(ownerOf(id, withChildren), numbers.flat());
}

/** @throws HoldfastError `CURSOR_INVALID` */
export function placesOf(id: ExecutionId, withChildren: boolean, cursor: string): Places {
  const numbers = cursorPlace(ownerOf(id, withChildren), cursor);
  if (numbers.length % 3 !== 0) throw cursorInvalid("malformed");
  const places = new Map<number, StreamPlace>();
  for (let index = 0; index < numbers.length; index += 3) {
    const execution = numberAt(numbers, index);
    const runVersion = numberAt(numbers, index + 1);
    const position = numberAt(numbers, index + 2);
    if (execution < 0 || runVersion < 0 || position < 0) throw cursorInvalid("malformed");
    places.set(execution, { execution, runVersion, position });
  }
  return places;
}
