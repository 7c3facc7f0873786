import { decodeBase64, encodeBase64 } from "../../../model/base64.ts";
import { HoldfastError } from "../../../model/errors.ts";

/** A place in the list, and which way to go from it. */
export interface ListCursor {
  readonly direction: "older" | "newer";
  readonly createdAt: number;
  readonly id: string;
  /** Counts the place itself in. */
  readonly inclusive: boolean;
}

/** What the text of a cursor holds. A change of its meaning takes the next number. */
const format = 1;

/**
 * The text of a cursor: opaque to its users, so that what it is made of can
 * change. It knows its filter, since a place in one list means nothing in
 * another.
 */
export function cursorText(
  { direction, createdAt, id, inclusive }: ListCursor,
  filter: string,
): string {
  const fields = [format, direction, createdAt, id, Number(inclusive), filter];
  return encodeBase64(new TextEncoder().encode(JSON.stringify(fields)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** @throws HoldfastError `CURSOR_INVALID`; `details.reason` says why. */
export function parseCursor(text: string, filter: string): ListCursor {
  const fields = parsedFields(text);
  if (fields === undefined) throw cursorInvalid("malformed");
  if (fields[0] !== format) throw cursorInvalid("format");
  const [, direction, createdAt, id, inclusive, madeFor] = fields;
  if (
    fields.length !== 6 ||
    (direction !== "older" && direction !== "newer") ||
    !Number.isSafeInteger(createdAt) ||
    typeof id !== "string" ||
    (inclusive !== 0 && inclusive !== 1)
  )
    throw cursorInvalid("malformed");
  if (madeFor !== filter) throw cursorInvalid("filter");
  return {
    direction,
    createdAt: createdAt as number,
    id,
    inclusive: inclusive === 1,
  };
}

function parsedFields(text: string): readonly unknown[] | undefined {
  if (typeof text !== "string") return undefined;
  const standard = text.replaceAll("-", "+").replaceAll("_", "/");
  const bytes = decodeBase64(
    standard.padEnd(Math.ceil(standard.length / 4) * 4, "="),
  );
  if (bytes === undefined) return undefined;
  try {
    const fields: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return Array.isArray(fields) ? (fields as unknown[]) : undefined;
  } catch {
    return undefined;
  }
}

const reasons = {
  malformed: "is not one that Holdfast gave out",
  format: "was made by another version of Holdfast",
  filter: "was made for other filters",
} as const;

function cursorInvalid(reason: keyof typeof reasons): HoldfastError {
  return new HoldfastError(
    "CURSOR_INVALID",
    `The cursor ${reasons[reason]}. Give back the text as you got it, with the same filters, or begin again without one.`,
    { reason },
  );
}
