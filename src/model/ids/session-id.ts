import type { Branded } from "./brand.ts";
import { parseChosenId } from "./chosen-id.ts";

/** A session, by the name its host gave it. */
export type SessionId = Branded<"SessionId">;

/** @throws HoldfastError `ID_MALFORMED` */
export function parseSessionId(text: string): SessionId {
  return parseChosenId("session", text) as SessionId;
}
