import type { Branded } from "./brand.ts";
import { parseChosenId } from "./chosen-id.ts";

/** The id of a process: the name that its caller chose. */
export type ProcessId = Branded<"ProcessId">;

/** @throws HoldfastError `ID_MALFORMED` */
export function parseProcessId(text: string): ProcessId {
  return parseChosenId("process", text) as ProcessId;
}
