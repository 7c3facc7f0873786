import { parseAst } from "vitest/node";

type Raw = Readonly<Record<string, unknown>>;

/** A node of a parsed file, with its way up. */
export class Syntax {
  readonly type: string;
  readonly parent: Syntax | undefined;
  readonly #raw: Raw;
  readonly #source: string;

  constructor(raw: Raw, parent: Syntax | undefined, source: string) {
    this.type = String(raw["type"]);
    this.parent = parent;
    this.#raw = raw;
    this.#source = source;
  }

  /** A plain property: a name, an operator, a literal's value. */
  value(property: string): unknown {
    return this.#raw[property];
  }

  child(property: string): Syntax | undefined {
    return this.#wrap(this.#raw[property]);
  }

  children(property: string): readonly Syntax[] {
    const list = this.#raw[property];
    return Array.isArray(list) ? list.flatMap((item: unknown) => this.#wrap(item) ?? []) : [];
  }

  /** This node and all below it. A list of what is left, since generators inside generators cost their depth for each node. */
  *all(): Generator<Syntax, void> {
    const left: Syntax[] = [this];
    for (let node = left.pop(); node !== undefined; node = left.pop()) {
      yield node;
      const below = node.#below();
      for (let at = below.length - 1; at >= 0; at -= 1) left.push(below[at] as Syntax);
    }
  }

  /** The nodes one step below. Plain loops: there are a million nodes, and each rule asks all of them. */
  #below(): readonly Syntax[] {
    const found: Syntax[] = [];
    for (const property in this.#raw) {
      const value = this.#raw[property];
      if (typeof value !== "object" || value === null) continue;
      if (!Array.isArray(value)) {
        if ("type" in value) found.push(new Syntax(value, this, this.#source));
        continue;
      }
      for (const item of value as readonly unknown[])
        if (typeof item === "object" && item !== null && "type" in item)
          found.push(new Syntax(item, this, this.#source));
    }
    return found;
  }

  get text(): string {
    return this.#source.slice(this.#offset("start"), this.#offset("end"));
  }

  get firstLine(): number {
    return lineAt(this.#source, this.#offset("start"));
  }

  get lastLine(): number {
    return lineAt(this.#source, this.#offset("end"));
  }

  /** True for the same place in the file, whichever way it was reached. */
  is(other: Syntax | undefined): boolean {
    return other !== undefined && this.#raw === other.#raw;
  }

  #offset(property: "start" | "end"): number {
    return Number(this.#raw[property]);
  }

  #wrap(raw: unknown): Syntax | undefined {
    return typeof raw === "object" && raw !== null && "type" in raw
      ? new Syntax(raw, this, this.#source)
      : undefined;
  }
}

const parsed = new Map<string, Syntax>();

export function parse(file: string, text: string): Syntax {
  let program = parsed.get(text);
  if (program === undefined) {
    const lang = file.endsWith(".ts") ? "ts" : "js";
    const raw: object = parseAst(text, { lang }, file);
    program = new Syntax(raw as Raw, undefined, text);
    parsed.set(text, program);
  }
  return program;
}

/** `a` of `a`, `a.b.c` and `a.b(…)(…)`; undefined for anything else. */
export function rootName(node: Syntax | undefined): string | undefined {
  switch (node?.type) {
    case "Identifier":
      return String(node.value("name"));
    case "MemberExpression":
      return rootName(node.child("object"));
    case "CallExpression":
      return rootName(node.child("callee"));
    default:
      return undefined;
  }
}

/** Where the lines of a source begin, by source. */
const lineStarts = new Map<string, readonly number[]>();

function lineAt(source: string, offset: number): number {
  let starts = lineStarts.get(source);
  if (starts === undefined) {
    const found = [0];
    for (let at = source.indexOf("\n"); at !== -1; at = source.indexOf("\n", at + 1))
      found.push(at + 1);
    starts = found;
    lineStarts.set(source, starts);
  }
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((starts[middle] as number) <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
