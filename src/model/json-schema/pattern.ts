import type { Work } from "./work.ts";

/**
 * Regular expressions that cannot hang. A native expression such as `(a+)+$` takes exponential time
 * for some texts, and nothing can interrupt it. So a pattern is parsed here and matched by trying
 * each pair of instruction and position at most once, which is linear in the text. Only single
 * characters are left to native expressions. Backreferences and lookbehind have no such bound.
 */
export interface Pattern {
  readonly program: readonly Instruction[];
  readonly isUnicode: boolean;
}

type Instruction =
  | { readonly op: "unit"; readonly fits: (unit: string) => boolean }
  | { readonly op: "split"; readonly first: number; readonly second: number }
  | { readonly op: "assert"; readonly assertion: Assertion }
  /** Runs the instructions from the next one to their `match`, and continues at `next`. */
  | { readonly op: "look"; readonly isNegated: boolean; readonly next: number }
  | { readonly op: "match" };

type Assertion = "start" | "end" | "boundary" | "inside";

type Node =
  | { readonly kind: "unit"; readonly fits: (unit: string) => boolean }
  | { readonly kind: "sequence" | "choice"; readonly parts: readonly Node[] }
  | { readonly kind: "repeat"; readonly node: Node; readonly min: number; readonly max: number }
  | { readonly kind: "assert"; readonly assertion: Assertion }
  | { readonly kind: "look"; readonly node: Node; readonly isNegated: boolean };

const charactersMax = 4_096;
const instructionsMax = 5_000;
const nestingMax = 100;
/** The states of one match take a bit each. */
const statesMax = 64 * 1024 * 1024;

class Unsupported extends Error {}

/** Parses a pattern, or returns its fault as a clause, such as "has a backreference". */
export function parsedPattern(source: string): Pattern | string {
  if (source.length > charactersMax) return `has more than ${charactersMax} characters`;
  const isUnicode = isValid(source, "u");
  if (!isUnicode && !isValid(source, "")) return "is an invalid regular expression";
  try {
    return { program: compiled(new Parser(source, isUnicode).parsed()), isUnicode };
  } catch (error) {
    if (error instanceof Unsupported) return error.message;
    throw error;
  }
}

function isValid(source: string, flags: string): boolean {
  try {
    return new RegExp(source, flags) instanceof RegExp;
  } catch {
    return false;
  }
}

/** Reads an expression whose syntax is known to be valid. */
class Parser {
  #at = 0;
  #nesting = 0;
  readonly #source: string;
  readonly #isUnicode: boolean;

  constructor(source: string, isUnicode: boolean) {
    this.#source = source;
    this.#isUnicode = isUnicode;
  }

  parsed(): Node {
    return this.#choice();
  }

  #choice(): Node {
    const parts = [this.#sequence()];
    while (this.#takes("|")) parts.push(this.#sequence());
    return parts.length === 1 ? (parts[0] as Node) : { kind: "choice", parts };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#at < this.#source.length && !this.#isNext("|") && !this.#isNext(")"))
      parts.push(this.#repeated(this.#atom()));
    return { kind: "sequence", parts };
  }

  #repeated(node: Node): Node {
    const found = /^(?:([*+?])|\{(\d+)(,(\d*))?\})\??/.exec(this.#source.slice(this.#at));
    if (found === null) return node;
    this.#at += found[0].length;
    const [, sign, least, range, most] = found;
    if (sign !== undefined)
      return {
        kind: "repeat",
        node,
        min: sign === "+" ? 1 : 0,
        max: sign === "?" ? 1 : Number.POSITIVE_INFINITY,
      };
    const min = Number(least);
    const max =
      range === undefined
        ? min
        : most === undefined || most === ""
          ? Number.POSITIVE_INFINITY
          : Number(most);
    return { kind: "repeat", node, min, max };
  }

  #atom(): Node {
    if (this.#takes("^")) return { kind: "assert", assertion: "start" };
    if (this.#takes("$")) return { kind: "assert", assertion: "end" };
    if (this.#takes("(")) return this.#group();
    if (this.#isNext("[")) return this.#native(this.#classLength());
    if (this.#isNext("\\")) return this.#escape();
    if (this.#isNext(".")) return this.#native(1);
    const unit = this.#isUnicode
      ? String.fromCodePoint(this.#source.codePointAt(this.#at) as number)
      : (this.#source[this.#at] as string);
    this.#at += unit.length;
    return { kind: "unit", fits: (other) => other === unit };
  }

  #group(): Node {
    this.#nesting += 1;
    if (this.#nesting > nestingMax) throw new Unsupported("nests too deeply");
    const isLook = this.#isNext("?=") || this.#isNext("?!");
    const isNegated = this.#isNext("?!");
    if (isLook || this.#takes("?:")) this.#at += isLook ? 2 : 0;
    else if (this.#isNext("?<=") || this.#isNext("?<!"))
      throw new Unsupported("has a lookbehind, which is not supported");
    else if (this.#isNext("?<")) this.#at = this.#source.indexOf(">", this.#at) + 1;
    else if (this.#isNext("?")) throw new Unsupported("changes flags, which is not supported");
    const node = this.#choice();
    this.#at += 1;
    this.#nesting -= 1;
    return isLook ? { kind: "look", node, isNegated } : node;
  }

  /** The length of a class such as `[^\]a-z]`. */
  #classLength(): number {
    let end = this.#at + 1;
    while (this.#source[end] !== "]") end += this.#source[end] === "\\" ? 2 : 1;
    return end + 1 - this.#at;
  }

  #escape(): Node {
    const rest = this.#source.slice(this.#at);
    if (this.#takes("\\b")) return { kind: "assert", assertion: "boundary" };
    if (this.#takes("\\B")) return { kind: "assert", assertion: "inside" };
    if (/^\\(?:[1-9k]|0\d)/.test(rest))
      throw new Unsupported("has a backreference or an octal escape, which is not supported");
    if (/^\\c(?![A-Za-z])/.test(rest)) throw new Unsupported("has an unknown escape");
    const whole = this.#isUnicode
      ? /^\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[dD][89abAB][\dA-Fa-f]{2}\\u[dD][c-fC-F][\dA-Fa-f]{2}|u[\dA-Fa-f]{4}|x[\dA-Fa-f]{2}|c.|[^])/u
      : /^\\(?:u[\dA-Fa-f]{4}|x[\dA-Fa-f]{2}|c.|[^])/;
    return this.#native((whole.exec(rest) as RegExpExecArray)[0].length);
  }

  /** One character that a native expression decides. */
  #native(length: number): Node {
    const source = this.#source.slice(this.#at, this.#at + length);
    this.#at += length;
    const one = new RegExp(`^(?:${source})$`, this.#isUnicode ? "u" : "");
    return { kind: "unit", fits: (unit) => one.test(unit) };
  }

  #isNext(text: string): boolean {
    return this.#source.startsWith(text, this.#at);
  }

  #takes(text: string): boolean {
    if (!this.#isNext(text)) return false;
    this.#at += text.length;
    return true;
  }
}

function compiled(root: Node): readonly Instruction[] {
  const program: Instruction[] = [];
  let copies = 0;
  const add = (instruction: Instruction): number => {
    if (program.length === instructionsMax) throw new Unsupported("is too large");
    return program.push(instruction) - 1;
  };
  const emit = (node: Node): void => {
    // An empty group may be repeated a billion times without any instruction.
    copies += 1;
    if (copies > instructionsMax) throw new Unsupported("is too large");
    switch (node.kind) {
      case "unit":
        return void add({ op: "unit", fits: node.fits });
      case "assert":
        return void add({ op: "assert", assertion: node.assertion });
      case "sequence":
        return node.parts.forEach(emit);
      case "choice":
        return emitChoice(node.parts);
      case "look": {
        const at = add({ op: "match" });
        emit(node.node);
        add({ op: "match" });
        program[at] = { op: "look", isNegated: node.isNegated, next: program.length };
        return;
      }
      default:
        return emitRepeat(node);
    }
  };
  const emitChoice = (parts: readonly Node[]): void => {
    const ends: number[] = [];
    parts.forEach((part, index) => {
      if (index === parts.length - 1) return emit(part);
      const at = add({ op: "match" });
      emit(part);
      ends.push(add({ op: "match" }));
      program[at] = { op: "split", first: at + 1, second: program.length };
    });
    for (const end of ends)
      program[end] = { op: "split", first: program.length, second: program.length };
  };
  const emitRepeat = ({ node, min, max }: Extract<Node, { kind: "repeat" }>): void => {
    for (let count = 0; count < min; count += 1) emit(node);
    if (max === Number.POSITIVE_INFINITY) {
      const at = add({ op: "match" });
      emit(node);
      add({ op: "split", first: at, second: at });
      program[at] = { op: "split", first: at + 1, second: program.length };
      return;
    }
    const skips: number[] = [];
    for (let count = min; count < max; count += 1) {
      skips.push(add({ op: "match" }));
      emit(node);
    }
    for (const skip of skips)
      program[skip] = { op: "split", first: skip + 1, second: program.length };
  };
  emit(root);
  add({ op: "match" });
  return program;
}

/** True if the pattern is found anywhere in the text, as JSON Schema wants it. */
export function matches({ program, isUnicode }: Pattern, text: string, work: Work): boolean {
  work.spend(text.length);
  const units = isUnicode ? Array.from(text) : text.split("");
  const states = program.length * (units.length + 1);
  if (states > statesMax) work.exhaust();
  const tried = new Uint8Array(Math.ceil(states / 8));
  for (let from = 0; from <= units.length; from += 1)
    if (isFound(program, units, { work, tried, at: 0, from })) return true;
  return false;
}

interface Search {
  readonly work: Work;
  /** A bit for each pair of instruction and position that has been tried. */
  readonly tried: Uint8Array;
  readonly at: number;
  readonly from: number;
}

function isFound(
  program: readonly Instruction[],
  units: readonly string[],
  { work, tried, at, from }: Search,
): boolean {
  const left: number[] = [at, from];
  while (left.length > 0) {
    const position = left.pop() as number;
    const place = left.pop() as number;
    const state = place * (units.length + 1) + position;
    const bit = 1 << (state & 7);
    if (((tried[state >> 3] as number) & bit) !== 0) continue;
    tried[state >> 3] = (tried[state >> 3] as number) | bit;
    work.spend(1);
    const instruction = program[place] as Instruction;
    switch (instruction.op) {
      case "match":
        return true;
      case "unit": {
        const unit = units[position];
        if (unit !== undefined && instruction.fits(unit)) left.push(place + 1, position + 1);
        break;
      }
      case "split":
        left.push(instruction.second, position, instruction.first, position);
        break;
      case "assert":
        if (isAt(instruction.assertion, units, position)) left.push(place + 1, position);
        break;
      default: {
        work.spend(tried.length >> 3);
        const own = { work, tried: new Uint8Array(tried.length), at: place + 1, from: position };
        if (isFound(program, units, own) !== instruction.isNegated)
          left.push(instruction.next, position);
      }
    }
  }
  return false;
}

function isAt(assertion: Assertion, units: readonly string[], position: number): boolean {
  if (assertion === "start") return position === 0;
  if (assertion === "end") return position === units.length;
  const isBoundary = isWord(units[position - 1]) !== isWord(units[position]);
  return isBoundary === (assertion === "boundary");
}

function isWord(unit: string | undefined): boolean {
  return unit !== undefined && /^\w$/.test(unit);
}
