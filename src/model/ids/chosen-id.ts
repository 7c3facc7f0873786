import { malformedId } from "./malformed-id.ts";

const charactersMax = 256;

/** Checks an id that its owner chose, such as a name. @throws HoldfastError `ID_MALFORMED` */
export function parseChosenId(what: string, text: string): string {
  const isStorable = typeof text === "string" && !text.includes("\0") && text.isWellFormed();
  const isName = isStorable && text.trim().length > 0 && text.length <= charactersMax;
  if (isName) return text;
  throw malformedId(
    `a ${what} id: a string of 1 to ${charactersMax} characters`,
    text,
    isStorable ? "length" : "alphabet",
  );
}
