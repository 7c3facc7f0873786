import { HoldfastError } from "../model/errors.ts";

/** Derives facts about a statement from its text, once per template. */

/** Returns the text without comments and quoted parts, so that it starts with its verb. */
export function bare(text: string): string {
  return text
    .replaceAll(
      // Matches from left to right, since a quote in a comment is not a quote, and a comment sign in a
      // quote is not a comment.
      /(--[^\n]*|\/\*[\s\S]*?\*\/)|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|(\$\w*\$)[\s\S]*?\2/g,
      (_, comment: string | undefined) => (comment === undefined ? "''" : " "),
    )
    .replace(/^[\s;]+/, "")
    .trim();
}

/** Derived from the text, because drivers do not all report it. */
export function returnsRows(text: string): boolean | undefined {
  if (/^(CREATE|DROP|ALTER|REINDEX|ANALYZE|TRUNCATE)\b/i.test(text)) return false;
  if (/^(SELECT|VALUES|EXPLAIN)\b/i.test(text)) return true;
  const outer = withoutParentheses(text);
  const verb = /^WITH\b/i.test(outer)
    ? /\b(SELECT|VALUES|INSERT|REPLACE|UPDATE|DELETE)\b/i.exec(outer)?.[0]
    : /^(INSERT|REPLACE|UPDATE|DELETE)\b/i.exec(outer)?.[0];
  if (verb === undefined) return undefined;
  return /^[SV]/i.test(verb) || /\bRETURNING\b/i.test(outer);
}

function withoutParentheses(text: string): string {
  const outer = text.replaceAll(/\([^()]*\)/g, " ");
  return outer === text ? outer : withoutParentheses(outer);
}

export function refuseSeveral(text: string): void {
  // The body of a trigger contains statements of its own.
  const isTrigger = /^CREATE\s+(TEMP\w*\s+)?TRIGGER\b/i.test(text);
  if (isTrigger || !/;\s*\S/.test(text)) return;
  throw new HoldfastError(
    "OPERATION_INVALID",
    "A template holds several statements. Write one `sql` for each, so that none of them is skipped.",
  );
}

/**
 * Refuses statements that control a transaction, which belong to the backend. A body that ended one
 * would commit its neighbours' unfinished work.
 */
export function refuseControl(text: string): void {
  if (/^(BEGIN|COMMIT|END|ABORT|ROLLBACK|SAVEPOINT|RELEASE|START)\b/i.test(text))
    throw mayNotRun(
      text,
      "transactions belong to write and read. Return, throw or use rollbackWith instead.",
    );
  if (/^(ATTACH|DETACH|VACUUM|PRAGMA)\b/i.test(text))
    throw mayNotRun(
      text,
      "it is about the connection or the file, which this call shares with others. Use an option of the open, or a database shell.",
    );
  if (/\bOR\s+(ROLLBACK|FAIL)\b/i.test(text))
    throw mayNotRun(
      text,
      "OR ROLLBACK and OR FAIL would end the transaction or keep half of the statement. Use ON CONFLICT, or let it fail.",
    );
}

function mayNotRun(text: string, why: string): HoldfastError {
  return new HoldfastError(
    "OPERATION_INVALID",
    `A body may not run "${text.slice(0, 40)}": ${why}`,
  );
}
