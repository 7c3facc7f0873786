import type { Branded } from "./brand.ts";
import { malformedId } from "./malformed-id.ts";

/** A session, by the name its host gave it. */
export type SessionId = Branded<"SessionId">;

const charactersMax = 256;

/** @throws HoldfastError `ID_MALFORMED` */
export function parseSessionId(text: string): SessionId {
  const isName =
    typeof text === "string" &&
    text.trim().length > 0 &&
    text.length <= charactersMax &&
    !text.includes("\0") &&
    text.isWellFormed();
  if (isName) return text as SessionId;
  throw malformedId(
    `a session id: a text of 1 to ${charactersMax} characters`,
    text,
    "length",
  );
}
