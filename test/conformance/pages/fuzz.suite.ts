import { seed } from "../../depth.ts";
import { describe, expect, test } from "vitest";
import { isHoldfastError } from "../../../src/model/errors.ts";
import type { StoreOptions } from "../../../src/kernel.ts";
import { rollbackWith } from "../../../src/sql/operation.ts";
import type { Tx } from "../../../src/sql/operation.ts";
import type { Backend } from "../backend.ts";
import { onPages, pageMakers, pageNames } from "./fixture.ts";
import type { PagesFixture } from "./fixture.ts";
import {
  Trap,
  databaseValues,
  hostileValues,
  isPlain,
  looks,
  misspelt,
  pathsOf,
  valueAt,
  withValue,
} from "./hostile.ts";
import type { Path } from "./hostile.ts";
import type { ValidCall } from "./valid-call.ts";
import { validCalls } from "./valid-calls.ts";

/**
 * JavaScript lets anything through. Whatever stands in place of an argument of
 * a method, of a property of it or of an option: the call answers, or is
 * refused with a code and has written nothing, and a prepared call is refused
 * alike. With `oneIn` every so many of the values are tried, in turn,
 * and of those that databases may differ about four times as many.
 */
export function fuzzSuite(backend: Backend, { oneIn = 1 } = {}): void {
  describe("hostile values in place of every argument", () => {
    test(
      "find a valid call of every method to stand in",
      onPages(backend, async ({ page, rows }) => {
        const table = validCalls(rows);
        for (const name of pageNames)
          expect([name, ...Object.keys(table[name]).toSorted()]).toEqual([
            name,
            ...methodNames(page(name, false)).toSorted(),
          ]);
      }),
    );

    test.each(pageNames)(
      "of %s are taken, or refused with a code, and then nothing is written",
      (name) =>
        onPages(backend, async (fixture) => {
          const flaws: string[] = [];
          for (const [method, call] of Object.entries(validCalls(fixture.rows)[name])) {
            const page = fixture.page(name, call.isKept === true);
            const fuzz = new MethodFuzz(fixture, call, page[method] as Run, oneIn);
            for (const flaw of await fuzz.flaws()) flaws.push(`${name}.${method}${flaw}`);
          }
          expect(flaws).toEqual([]);
        })(),
    );

    test(
      "of the options of every page are taken, or refused with a code",
      onPages(backend, ({ database }) => {
        const flaws = pageNames
          .filter((name) => name !== "sessionAttachments")
          .flatMap((name) =>
            optionFlaws(name, (options) => (pageMakers[name] as Run)(database, options)),
          );
        expect(flaws).toEqual([]);
        return Promise.resolve();
      }),
    );
  });
}

type Run = ((...given: readonly unknown[]) => unknown) & {
  readonly prepare?: (...given: readonly unknown[]) => () => Tx<unknown>;
};

function methodNames(page: object): readonly string[] {
  return Object.entries(page)
    .filter(([, value]) => typeof value === "function")
    .map(([name]) => name);
}

/** What is refused at the border, before a database is asked. */
const atBorder = /(INVALID|MALFORMED|NOT_SERIALIZABLE|TOO_LARGE)/;

type Outcome =
  | { readonly kind: "answered"; readonly value: unknown }
  | { readonly kind: "waiting" }
  | { readonly kind: "refused"; readonly error: unknown };

const momentMs = 20;
/** No message repeats all of a text that somebody gave. */
const messageMax = 2_000;

class MethodFuzz {
  readonly #fixture: PagesFixture;
  readonly #call: ValidCall;
  readonly #oneIn: number;
  readonly #method: Run;
  readonly #flaws: string[] = [];
  /** Statements of the last call that have changed rows. */
  #changes = 0;
  /** Values so far. */
  #count = 0;

  constructor(fixture: PagesFixture, call: ValidCall, method: Run, oneIn: number) {
    this.#oneIn = oneIn;
    this.#fixture = fixture;
    this.#call = call;
    this.#method = method;
  }

  async flaws(): Promise<readonly string[]> {
    const { args } = this.#call;
    await this.#valid();
    for (const path of pathsOf(args)) {
      await this.#hostile(path);
      if (!isPlain(valueAt(args, path)) || this.#isFree(path)) continue;
      for (const name of await this.#properties(path)) await this.#hostile([...path, name]);
    }
    return this.#flaws;
  }

  /** Otherwise nothing would be learned from the others. */
  async #valid(): Promise<void> {
    const { args } = this.#call;
    const outcome = await this.#outcome(args);
    this.#judge("a valid call", outcome);
    if (outcome.kind === "refused" && atBorder.test(codeOf(outcome.error)))
      this.#flaws.push(`, a valid call: ${String(outcome.error)}`);
    if (this.#method.prepare === undefined) return;
    const part = this.#method.prepare(...withoutWait(args));
    const prepared = await settled(() =>
      this.#fixture.database.write(
        "prepared",
        function* () {
          yield* part();
          return yield* rollbackWith(undefined);
        },
        { isolation: "readCommitted" },
      ),
    );
    this.#judge("a valid call, prepared", prepared);
  }

  async #hostile(path: Path): Promise<void> {
    for (const [name, make] of Object.entries(hostileValues)) {
      this.#count += 1;
      const oneIn = databaseValues.has(name) ? Math.ceil(this.#oneIn / 4) : this.#oneIn;
      if ((this.#count + seed) % oneIn !== 0) continue;
      const args = withValue(this.#call.args, path, make());
      looks.walked = 0;
      const what = `(${path.join(".")} = ${name})`;
      const outcome = await this.#outcome(args);
      this.#judge(what, outcome);
      this.#judgePrepared(what, args, outcome);
      if (looks.walked > 0) this.#flaws.push(`${what}: walked beyond all bounds`);
    }
  }

  /** The names of the properties that an object may have besides, as the refusal of another one has them. */
  async #properties(path: Path): Promise<readonly string[]> {
    const whole = valueAt(this.#call.args, path) as object;
    const args = withValue(this.#call.args, path, { ...whole, [misspelt]: 1 });
    const outcome = await this.#outcome(args);
    const error = outcome.kind === "refused" ? outcome.error : undefined;
    if (!atBorder.test(codeOf(error))) {
      this.#flaws.push(`(${path.join(".")} has a ${misspelt}): accepted`);
      return [];
    }
    const [, list = ""] = /The (?:options|fields) are: ([^.]+)\./.exec(String(error)) ?? [];
    const names = list.split(", ").filter((name) => name !== "");
    return names.filter((name) => !Object.hasOwn(whole, name));
  }

  #isFree(path: Path): boolean {
    const place = `${path.join(".")}.`;
    return (this.#call.free ?? []).some((free) => place.startsWith(`${free}.`));
  }

  async #outcome(args: readonly unknown[]): Promise<Outcome> {
    const watch = { changes: 0 };
    const outcome = this.#fixture.watching(watch, () => settled(() => this.#method(...args)));
    const first = await (this.#call.waits === true ? Promise.race([outcome, aMoment()]) : outcome);
    if (first.kind === "answered") await ended(first.value);
    this.#changes = watch.changes;
    return first;
  }

  #judge(what: string, outcome: Outcome): void {
    if (outcome.kind !== "refused") return;
    const { error } = outcome;
    if (isHoldfastError(error) && error.message.length > messageMax)
      this.#flaws.push(`${what}: told in ${error.message.length} characters`);
    if (!isHoldfastError(error) && !(error instanceof Trap))
      this.#flaws.push(`${what}: ${spoken(error)}`);
    if (this.#changes > 0 && this.#call.mayWrite !== true)
      this.#flaws.push(`${what}: written, and refused: ${String(error)}`);
  }

  #judgePrepared(what: string, given: readonly unknown[], called: Outcome): void {
    const { prepare } = this.#method;
    if (prepare === undefined) return;
    try {
      prepare(...withoutWait(given));
    } catch (error) {
      if (error instanceof Trap) return;
      if (!isHoldfastError(error)) this.#flaws.push(`.prepare${what}: ${spoken(error)}`);
      else if (!error.message.startsWith("A prepared call takes no")) {
        const code = called.kind === "refused" ? codeOf(called.error) : "";
        if (code !== error.code)
          this.#flaws.push(`.prepare${what}: ${String(error)}, not "${code}"`);
      }
    }
  }
}

async function settled(run: () => unknown): Promise<Outcome> {
  try {
    return { kind: "answered", value: await run() };
  } catch (error) {
    return { kind: "refused", error };
  }
}

function aMoment(): Promise<Outcome> {
  return new Promise((resolve) => {
    setTimeout(() => resolve({ kind: "waiting" }), momentMs);
  });
}

/** Ends what runs on until it is told to stop. */
async function ended(value: unknown): Promise<void> {
  if (typeof value !== "object" || value === null) return;
  const running = value as { stop?(): unknown; close?(): unknown };
  await running.stop?.();
  await running.close?.();
}

/** How long to wait is for the transaction that a prepared call becomes a part of. */
export function withoutWait(args: readonly unknown[]): readonly unknown[] {
  return args.map((arg) =>
    isPlain(arg) && arg["signal"] instanceof AbortSignal
      ? Object.fromEntries(Object.entries(arg).filter(([name]) => name !== "signal"))
      : arg,
  );
}

function codeOf(error: unknown): string {
  return isHoldfastError(error) ? error.code : "";
}

/** With the place that it comes from, since nobody meant to throw it. */
function spoken(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const [, place = ""] = /(src\/[^)\n]+)/.exec(stack) ?? [];
  return `${String(error)} ${place}`;
}

/** Options that nothing else can stand for. */
const ofStores: ReadonlySet<string> = new Set([
  "clock",
  "entropy",
  "payload",
  "valueLimits",
] satisfies (keyof StoreOptions)[]);

function optionFlaws(page: string, make: (options: unknown) => unknown): readonly string[] {
  const flaws: string[] = [];
  const refusal = (what: string, options: unknown): string => {
    try {
      make(options);
      return "";
    } catch (error) {
      if (!isHoldfastError(error) && !(error instanceof Trap))
        flaws.push(`${page}(${what}): ${spoken(error)}`);
      return String(error);
    }
  };
  const text = refusal("a misspelt option", { [misspelt]: 1 });
  if (!text.includes(misspelt)) flaws.push(`${page}({ ${misspelt} }): accepted`);
  const [, list = ""] = /The (?:options|fields) are: ([^.]+)\./.exec(text) ?? [];
  for (const [name, hostile] of Object.entries(hostileValues)) {
    refusal(`options = ${name}`, hostile());
    for (const option of list.split(", ").filter((each) => each !== "")) {
      const answer = refusal(`${option} = ${name}`, { [option]: hostile() });
      // A codec that is silently left out would leave values in plain text.
      if (ofStores.has(option) && name !== "undefined" && answer === "")
        flaws.push(`${page}({ ${option}: ${name} }): accepted`);
    }
  }
  return flaws;
}
