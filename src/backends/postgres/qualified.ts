import { migrations } from "../../sql/migrations.generated.ts";
import type { Template } from "../../sql/statement.ts";

/**
 * Our tables are named with their schema in every text sent to the server, so the search path
 * belongs to the app: a table of the app is found, or created, where the app expects it (ADR "our
 * tables are qualified").
 */

const ownTables: ReadonlySet<string> = new Set([
  "holdfast_migration",
  ...migrations.flatMap(({ postgres }) =>
    [...postgres.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name = ""]) => name),
  ),
]);

/** Separates the pieces of a template at its parameters; no SQL contains it. */
const hole = "\0";

/**
 * A template's texts as their original literal, with our tables qualified. One instance per
 * database, since databases of two schemas may use the same template.
 */
export class TemplateTexts {
  readonly #schema: string;
  readonly #literals = new WeakMap<Template, TemplateStringsArray>();

  constructor(schema: string) {
    this.#schema = schema;
  }

  /**
   * The literal of a template. The driver accepts text too, but then it leaks a key of one of its
   * maps for every statement that fails.
   */
  literalOf(template: Template): TemplateStringsArray {
    let literal = this.#literals.get(template);
    if (literal === undefined) {
      const text = template.pieces.map((piece) => piece.postgres).join(hole);
      literal = asLiteral(qualified(text, this.#schema).split(hole));
      this.#literals.set(template, literal);
    }
    return literal;
  }
}

export function asLiteral(pieces: readonly string[]): TemplateStringsArray {
  return Object.assign([...pieces], { raw: pieces });
}

/** Comments and quoted parts, words (and whether a dot follows), and the relevant punctuation. */
const tokens =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\b[eE]'(?:[^'\\]|''|\\[\s\S])*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$)[\s\S]*?\1|([\p{L}_][\p{L}\p{N}_$]*)(?=\s*(\.)?)|[(),]|\S/gu;

/** Words that a table's name follows. */
const beforeTables = words("FROM USING JOIN INTO UPDATE TABLE REFERENCES ON");
/** Words that a comma-separated list of tables may follow. */
const beforeLists = words("FROM USING TABLE");
/** Words that may stand between such a word and the name. */
const between = words("ONLY LATERAL IF NOT EXISTS");
const afterLists = words(
  "SELECT WHERE SET GROUP ORDER HAVING LIMIT OFFSET FETCH FOR WINDOW UNION INTERSECT EXCEPT RETURNING VALUES",
);

/**
 * Qualifies names only in the place of a table. Elsewhere, as in `holdfast_session.id` or `FOR
 * UPDATE OF holdfast_session`, Postgres knows the table only by its plain name.
 */
export function qualified(text: string, schema: string): string {
  if (!/holdfast_/i.test(text)) return text;
  /**
   * True where a table may come next, and where one may follow the next comma, here and around each
   * parenthesis.
   */
  let isExpected = false;
  let isList = false;
  const around: boolean[] = [];
  return text.replaceAll(tokens, (token, _, word?: string, dot?: string) => {
    if (word !== undefined) {
      const upper = word.toUpperCase();
      if (isExpected && dot === undefined && ownTables.has(word.toLowerCase())) {
        isExpected = false;
        return `"${schema}".${word}`;
      }
      isExpected = beforeTables.has(upper) || (isExpected && between.has(upper));
      if (beforeLists.has(upper)) isList = true;
      else if (afterLists.has(upper)) isList = false;
    } else if (token === "(") {
      around.push(isList);
      // True for `FROM (a CROSS JOIN b)`, false for `FROM f(a, b)`.
      isList = isExpected;
    } else if (token === ")") {
      isList = around.pop() ?? false;
      isExpected = false;
    } else if (token === ",") isExpected = isList;
    else if (!isComment(token)) isExpected = false;
    return token;
  });
}

function isComment(token: string): boolean {
  return token.startsWith("--") || token.startsWith("/*");
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(" "));
}
