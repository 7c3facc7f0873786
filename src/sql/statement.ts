import { HoldfastError } from "../model/errors.ts";
import { bare, refuseControl, refuseSeveral, returnsRows } from "./statement-text.ts";

/** The values that a statement may bind. */
export type SqlValue = string | number | bigint | Uint8Array | null;
/**
 * A parameter of a statement. A list is for Postgres only, as set forms bind it, followed by its
 * type: `unnest(${ids}::text[])`. Both databases accept `IN ${textsOf(ids)}`.
 */
export type Parameter = SqlValue | readonly SqlValue[];

/** The text around the parameters, spelled for each database. */
interface Piece {
  readonly sqlite: string;
  readonly postgres: string;
}

/**
 * One SQL text, independent of its parameters. The same template literal yields the same object at
 * every call. So connections keep prepared statements by identity, and the hot path neither builds
 * nor compares text.
 */
export class Template {
  readonly pieces: readonly Piece[];
  readonly sqlite: string;
  readonly postgres: string;
  /** True for several statements in one text, which only migrations on Postgres use. */
  readonly isScript: boolean;
  /** True when the number of changed rows is meaningful. */
  readonly counts: boolean;
  /** A conservative reading of the verb: anything but a plain query counts as a write. */
  readonly writes: boolean;
  /** True when it returns rows; undefined for an unknown verb. */
  readonly returnsRows: boolean | undefined;
  /**
   * True when "0 rows changed" proves that the statement left no trace: Holdfast's tables have no
   * triggers.
   */
  readonly tracelessWhenUnchanged: boolean;
  /**
   * True when a violated constraint proves that the statement left no trace. An app's table may
   * keep half of a statement (ON CONFLICT FAIL).
   */
  readonly tracelessWhenRefused: boolean;

  constructor(pieces: readonly Piece[], isScript = false) {
    this.pieces = pieces;
    this.isScript = isScript;
    // better-sqlite3 takes `?1` for a name, so SQLite gets bare question marks.
    this.sqlite = pieces
      .map((piece) => piece.sqlite)
      .join("?")
      .trim();
    this.postgres = pieces
      .map((piece, index) => (index === 0 ? "" : `$${index}`) + piece.postgres)
      .join("")
      .trim();
    const text = bare(this.sqlite);
    if (!isScript) refuseSeveral(text);
    refuseControl(text);
    this.counts = /^(INSERT|UPDATE|DELETE|WITH)\b/i.test(text);
    this.writes = !/^(SELECT|VALUES)\b/i.test(text);
    this.returnsRows = returnsRows(text);
    this.tracelessWhenUnchanged = /^(UPDATE|DELETE\s+FROM)\s+holdfast_/i.test(text);
    this.tracelessWhenRefused = /^(INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+holdfast_/i.test(text);
  }

  /**
   * True when the text declares the parameter as a list, by its type. Without a type Postgres would
   * read `IN ($1)` as a comparison with the list's text and find nothing.
   */
  bindsList(index: number): boolean {
    return /^::\w+\[\]/.test(this.pieces[index + 1]?.postgres ?? "");
  }
}

/** A template with its parameters. Made by `sql`, also nested inside another. */
export class Statement {
  readonly template: Template;
  readonly parameters: readonly Parameter[];

  constructor(template: Template, parameters: readonly Parameter[]) {
    this.template = template;
    this.parameters = parameters;
  }
}

/**
 * The templates built from one literal. A literal whose values are all parameters has one;
 * otherwise they are found by the sequence of nested templates. Literals are finite, so this is
 * too.
 */
class Shape {
  template: Template | undefined;
  /** The next step after a parameter, the most common case. */
  plain: Shape | undefined;
  readonly nested: Map<Template, Shape> = new Map();
}

const shapes = new WeakMap<TemplateStringsArray, Shape>();

/**
 * Builds a statement: `sql\`SELECT n FROM t WHERE id = ${id}\``. Values become parameters.
 * Statements (from `sql` or sql/dialect.ts) are spliced in. Text is never spliced in, so nothing
 * can be injected.
 */
export function sql(
  strings: TemplateStringsArray,
  ...values: readonly (Parameter | Statement)[]
): Statement {
  if (!Array.isArray(strings?.raw))
    throw new HoldfastError(
      "OPERATION_INVALID",
      "`sql` is a tag: write sql`SELECT …`, not sql(…). A text from outside your code cannot be a statement.",
    );
  let shape = shapes.get(strings);
  if (shape === undefined) shapes.set(strings, (shape = new Shape()));
  // Plain loops: this runs for every statement, and callbacks took a twentieth of an append.
  let parameters: Parameter[] | undefined;
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] as Parameter | Statement;
    if (value instanceof Statement) {
      parameters ??= values.slice(0, index) as Parameter[];
      for (const parameter of value.parameters) parameters.push(parameter);
    } else parameters?.push(value);
  }
  if (parameters === undefined) {
    shape.template ??= new Template(strings.map(sameEverywhere));
    return new Statement(shape.template, values as readonly Parameter[]);
  }
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] as Parameter | Statement;
    shape =
      value instanceof Statement
        ? afterNested(shape, value.template)
        : (shape.plain ??= new Shape());
  }
  shape.template ??= new Template(splice(strings, values));
  return new Statement(shape.template, parameters);
}

function afterNested({ nested }: Shape, template: Template): Shape {
  let next = nested.get(template);
  if (next === undefined) nested.set(template, (next = new Shape()));
  return next;
}

/** Text with one spelling per database. Only sql/dialect.ts calls this. */
export function spelled(piece: Piece): Statement {
  return new Statement(new Template([piece]), []);
}

/** Several statements without parameters, sent to Postgres unchanged in one round trip. */
export function postgresScript(text: string): Statement {
  return new Statement(new Template([sameEverywhere(text)], true), []);
}

function isStatement(value: Parameter | Statement): value is Statement {
  return value instanceof Statement;
}

function sameEverywhere(text: string): Piece {
  return { sqlite: text, postgres: text };
}

function splice(
  strings: TemplateStringsArray,
  values: readonly (Parameter | Statement)[],
): Piece[] {
  const pieces: Piece[] = [sameEverywhere(strings[0] ?? "")];
  const extend = (piece: Piece): void => {
    const last = pieces.pop() ?? sameEverywhere("");
    pieces.push({
      sqlite: last.sqlite + piece.sqlite,
      postgres: last.postgres + piece.postgres,
    });
  };
  values.forEach((value, index) => {
    if (isStatement(value)) {
      const [first, ...rest] = value.template.pieces;
      if (first !== undefined) extend(first);
      pieces.push(...rest);
      extend(sameEverywhere(strings[index + 1] ?? ""));
    } else {
      pieces.push(sameEverywhere(strings[index + 1] ?? ""));
    }
  });
  return pieces;
}
