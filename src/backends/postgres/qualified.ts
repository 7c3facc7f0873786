import { migrations } from "../../sql/migrations.generated.ts";
import type { Template } from "../../sql/statement.ts";

/**
 * Our tables are named with their schema in every text that goes to the
 * server, so the search path is the app's alone: a table of the app is found,
 * or made, where the app expects it (ADR "our tables are qualified").
 */

const ownTables: ReadonlySet<string> = new Set([
  "holdfast_migration",
  ...migrations.flatMap(({ postgres }) =>
    [...postgres.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name = ""]) => name),
  ),
]);

/** Stands between the pieces of a template, where the parameters go; no SQL contains it. */
const hole = "\0";

/**
 * A template's texts as the literal they came from, our tables qualified. One
 * for each database, since a template may be used by databases of two schemas.
 */
export class TemplateTexts {
  readonly #schema: string;
  readonly #literals = new WeakMap<Template, TemplateStringsArray>();

  constructor(schema: string) {
    this.#schema = schema;
  }

  /**
   * The driver takes text too, but then keeps a new key in a map of its own
   * for every statement that fails.
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

/** Comments and all that is quoted, words (with what tells whether a dot follows), and the marks that matter. */
const tokens =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\b[eE]'(?:[^'\\]|''|\\[\s\S])*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$)[\s\S]*?\1|([\p{L}_][\p{L}\p{N}_$]*)(?=\s*(\.)?)|[(),]|\S/gu;

/** What a table's name comes after. */
const beforeTables = words("FROM USING JOIN INTO UPDATE TABLE REFERENCES ON");
/** Those after which several may come, with commas between them. */
const beforeLists = words("FROM USING TABLE");
/** What may stand between such a word and the name. */
const between = words("ONLY LATERAL IF NOT EXISTS");
const afterLists = words(
  "SELECT WHERE SET GROUP ORDER HAVING LIMIT OFFSET FETCH FOR WINDOW UNION INTERSECT EXCEPT RETURNING VALUES",
);

/**
 * Names only in the place of a table: elsewhere, as in `holdfast_session.id`
 * or `FOR UPDATE OF holdfast_session`, Postgres knows the table by its plain
 * name and takes no other.
 */
export function qualified(text: string, schema: string): string {
  if (!/holdfast_/i.test(text)) return text;
  /** Whether a table may come next, and whether one may after the next comma, here and around each parenthesis. */
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
      // `FROM (a CROSS JOIN b)`, and not `FROM f(a, b)`.
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
