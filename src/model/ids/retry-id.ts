import { ownKeyCharactersMax } from "./execution-id.ts";

const prefix = "retry:";
/** The number of a second or later copy, and the original of all copies. */
const numbered = /^([2-9]|[1-9]\d{1,8})@(.*)$/;
/** Callers' own ids that would read as one of the forms below. */
const likeOurs = /^(\d+|sha256)@/;

/**
 * Returns the id of the copy that retries a failed run: `retry:<id>`. If that copy fails too, the
 * next ids are `retry:2@<id>`, `retry:3@<id>` and so on, so repeated retries do not make the id
 * longer. If the id would be too long, or looks like one of these forms, its hash is used instead.
 *
 * The same run always gives the same id, which makes a retry repeatable. Two runs never give the
 * same id.
 */
export function retryId(source: string, sha256Hex: (text: string) => string): string {
  const id = readableId(source);
  return id !== undefined && id.length <= ownKeyCharactersMax
    ? id
    : `${prefix}sha256@${sha256Hex(source)}`;
}

function readableId(source: string): string | undefined {
  if (!source.startsWith(prefix)) return likeOurs.test(source) ? undefined : `${prefix}${source}`;
  const copied = source.slice(prefix.length);
  const [, count = "1", first = copied] = numbered.exec(copied) ?? [];
  return `${prefix}${Number(count) + 1}@${first}`;
}
