import type { Branded } from "./brand.ts";
import { parseChosenId } from "./chosen-id.ts";

/** The id of a session: the name that its host chose. */
export type SessionId = Branded<"SessionId">;

/** @throws HoldfastError `ID_MALFORMED` */
export function parseSessionId(text: string): SessionId {
  return parseChosenId("session", text) as SessionId;
}
