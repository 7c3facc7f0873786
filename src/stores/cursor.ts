import { decodeBase64, encodeBase64 } from "../model/values/base64.ts";
import { HoldfastError } from "../model/errors.ts";
import { isStorable } from "../model/shape.ts";

/**
 * Cursors of lists and graphs. Users treat them as opaque, so their content can change. Each names
 * its list, since a place in one list means nothing in another.
 */
export function cursorText(owner: string, place: readonly unknown[]): string {
  const text = JSON.stringify([format, owner, ...place]);
  return encodeBase64(new TextEncoder().encode(text))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** The version of the content of cursors. A change takes the next number. */
const format = 1;

/** Decodes the place that `cursorText` encoded. @throws HoldfastError `CURSOR_INVALID` */
export function cursorPlace(owner: string, text: string): readonly unknown[] {
  const fields = parsed(text);
  if (fields?.[0] !== format) throw cursorInvalid("malformed");
  if (fields[1] !== owner) throw cursorInvalid("filter");
  return fields.slice(2);
}

/**
 * A text in a place, such as an id, that a column accepts.
 * @throws HoldfastError `CURSOR_INVALID`
 */
export function textAt(place: readonly unknown[], index: number): string {
  const part = place[index];
  if (!isStorable(part)) throw cursorInvalid("malformed");
  return part;
}

/** A number in a place, such as the key of a row. @throws HoldfastError `CURSOR_INVALID` */
export function numberAt(place: readonly unknown[], index: number): number {
  const part = place[index];
  if (!Number.isSafeInteger(part)) throw cursorInvalid("malformed");
  return part as number;
}

export function cursorInvalid(reason: "malformed" | "filter"): HoldfastError {
  return new HoldfastError(
    "CURSOR_INVALID",
    `The cursor ${reason === "filter" ? "belongs to another list" : "was not issued by Holdfast"}. ` +
      "Pass the text as you got it, with the same filters, or start again without a cursor.",
    { reason },
  );
}

function parsed(text: string): readonly unknown[] | undefined {
  if (typeof text !== "string") return undefined;
  const standard = text.replaceAll("-", "+").replaceAll("_", "/");
  const bytes = decodeBase64(standard.padEnd(Math.ceil(standard.length / 4) * 4, "="));
  if (bytes === undefined) return undefined;
  try {
    const fields: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return Array.isArray(fields) ? (fields as unknown[]) : undefined;
  } catch {
    return undefined;
  }
}
