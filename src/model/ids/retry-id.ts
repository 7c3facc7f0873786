import { ownKeyCharactersMax } from "./execution-id.ts";

const prefix = "retry:";
/** The number of a copy that is at least the second, and what all of them are copies of. */
const numbered = /^([2-9]|[1-9]\d{1,8})@(.*)$/;
/** Names of a caller's own that would read as one of the forms below. */
const likeOurs = /^(\d+|sha256)@/;

/**
 * The id of the copy under which a failed run is tried again: `retry:<id>`, and
 * for a copy that has failed too `retry:2@<id>`, `retry:3@<id>` and so on, so
 * that trying again and again does not make it longer. A name that is too long
 * for that, or that looks like one of these, has its hash there.
 *
 * The same run always gives the same id, which makes trying again repeatable,
 * and two runs never give one id.
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
