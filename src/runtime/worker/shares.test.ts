import fc from "fast-check";
import { expect, test } from "vitest";
import { nextKind } from "../../model/execution/place-debt.ts";
import { Shares } from "./shares.ts";

/** The uses of places that are freed every 50 ms while all of `asking` ask, and the database has new work of `due`. */
function uses(count: number, asking: readonly string[], due: readonly string[]): string[] {
  const shares = new Shares([...new Set([...asking, ...due])].toSorted());
  return Array.from({ length: count }, (_, n) => {
    const now = 1_000 + 50 * n;
    const next = shares.next(asking, now);
    if (next?.kind !== "new") {
      const name = next?.name ?? "";
      shares.owe(name);
      shares.begin(name);
      shares.end(name);
      return name;
    }
    shares.looking();
    const [found] = next.names
      .filter((name) => due.includes(name))
      .toSorted((a, b) => shares.loadOf(a) - shares.loadOf(b));
    shares.looked(next.names, found === undefined ? [] : [{ name: found, hasBegun: false }], now);
    if (found === undefined) return "nothing";
    shares.begin(found);
    shares.end(found);
    return `new ${found}`;
  });
}

test("of four places of a function three go to resumed runs and one to new work", () => {
  expect(uses(12, ["f"], ["f"])).toEqual([
    "f",
    "f",
    "f",
    "new f",
    "f",
    "f",
    "f",
    "new f",
    "f",
    "f",
    "f",
    "new f",
  ]);
});

test("functions share places first, whether they resume runs or begin new ones", () => {
  const shared = uses(40, ["f", "g"], ["h"]);
  const count = (use: string): number => shared.filter((one) => one === use).length;
  expect(Math.abs(count("f") - count("g"))).toBeLessThanOrEqual(1);
  expect(Math.abs(count("f") - count("new h"))).toBeLessThanOrEqual(1);
});

test("a function that runs more gets its next place later", () => {
  const shares = new Shares(["f", "g"]);
  for (let n = 0; n < 5; n += 1) shares.begin("f");
  shares.begin("g");
  expect(shares.resumed(["f", "g"])).toBe("g");
  for (let n = 0; n < 5; n += 1) shares.begin("g");
  expect(shares.resumed(["f", "g"])).toBe("f");
});

test("a look that finds nothing is not repeated for 50 ms, and cancels what was owed", () => {
  const shares = new Shares(["f"]);
  const use = (now: number): string => {
    const next = shares.next(["f"], now);
    if (next?.kind !== "new") {
      shares.owe("f");
      return "resumed";
    }
    shares.looking();
    shares.looked(next.names, [], now);
    return "looked";
  };
  const at = (now: number, count: number): string[] =>
    Array.from({ length: count }, () => use(now));
  expect(at(1_000, 12).filter((one) => one === "looked")).toHaveLength(1);
  expect(at(1_049, 12)).not.toContain("looked");
  expect(at(1_050, 2)).toEqual(["looked", "resumed"]);
});

test("a look that finds nothing cancels the debt that it was given, and what came to it meanwhile", () => {
  const shares = new Shares(["f"]);
  for (let n = 0; n < 3; n += 1) shares.owe("f");
  shares.looking();
  for (let n = 0; n < 3; n += 1) shares.owe("f");
  shares.looked(["f"], [], 1_000);
  expect(shares.debtOf("f")).toEqual({ begun: 0, new: 0 });
  expect(shares.next(["f"], 1_050)?.kind).toBe("resumed");
});

test("a clock that was set back does not stop looks", () => {
  const shares = new Shares(["f"]);
  for (let n = 0; n < 3; n += 1) shares.owe("f");
  shares.notLooked(1_000_000);
  expect(shares.next(["f"], 1_000_049)?.kind).toBe("resumed");
  expect(shares.next(["f"], 1_000)?.kind).toBe("new");
});

test("a worker that was told of new work looks at once", () => {
  const shares = new Shares(["f"]);
  for (let n = 0; n < 3; n += 1) shares.owe("f");
  shares.notLooked(1_000);
  expect(shares.next(["f"], 1_000)?.kind).toBe("resumed");
  shares.told();
  expect(shares.next(["f"], 1_000)?.kind).toBe("new");
});

test("one place at a time is kept to find out whether there is new work", () => {
  const shares = new Shares(["f", "g", "h"]);
  shares.begin("f");
  expect(shares.next(["f"], 1_000)).toEqual({ kind: "new", names: ["g", "h"] });
  expect(shares.next(["f"], 1_000)).toEqual({ kind: "resumed", name: "f" });
  shares.looking();
  expect(shares.next(["f"], 1_000)).toEqual({ kind: "resumed", name: "f" });
});

test("while a look goes on, places are kept for work that is known, each for another debt", () => {
  const shares = new Shares(["f"]);
  for (let n = 0; n < 7; n += 1) shares.owe("f");
  expect(shares.next(["f"], 1_000)?.kind).toBe("new");
  shares.looking();
  shares.looked(["f"], [{ name: "f", hasBegun: false }], 1_000);
  shares.begin("f");
  shares.looking();
  expect(shares.next(["f"], 1_000)?.kind).toBe("new");
  expect(shares.next(["f"], 1_000)?.kind).toBe("resumed");
  for (let n = 0; n < 2; n += 1) shares.owe("f");
  expect(shares.next(["f"], 1_000)?.kind).toBe("new");
});

test("the n-th new run of a function begins with its 4n-th place, whatever its neighbours ask for", () => {
  const name = fc.constantFrom("a", "b", "c");
  const names = fc.uniqueArray(name, { minLength: 1 });
  fc.assert(
    fc.property(names, names, fc.integer({ min: 1, max: 400 }), (asking, due, count) => {
      const all = uses(count, asking, due);
      for (const one of due) {
        let places = 0;
        let begun = 0;
        for (const use of all) {
          if (use === one || use === `new ${one}`) places += 1;
          if (use === `new ${one}`) begun += 1;
          expect(begun).toBeGreaterThanOrEqual(Math.floor(places / 4));
        }
      }
    }),
  );
});

interface Due {
  readonly hasBegun: boolean;
  /** The number of places freed before the run was due. */
  readonly places: number;
  readonly rank: number;
}

/** The work that becomes due before a place is freed, and whether a resumed run asks for that place. */
interface Place {
  readonly due: readonly boolean[];
  readonly isAsked: boolean;
}

/** The due runs that did not start with a place of the first 4n, n being their rank by age. */
function lateRuns(places: readonly Place[]): readonly string[] {
  const shares = new Shares(["f"]);
  const waiting: Due[] = [];
  const late: string[] = [];
  for (const [place, { due, isAsked }] of places.entries()) {
    for (const hasBegun of due) waiting.push({ hasBegun, places: place, rank: waiting.length + 1 });
    const now = 1_000 + 50 * place;
    if (isAsked && shares.next(["f"], now)?.kind !== "new") {
      shares.owe("f");
      continue;
    }
    const kind = nextKind(shares.debtOf("f"));
    shares.looking();
    const wanted = waiting.findIndex(({ hasBegun }) => hasBegun === (kind === "begun"));
    const [found] = waiting.splice(kind === "either" ? 0 : Math.max(0, wanted), 1);
    const name = "f";
    shares.looked([name], found === undefined ? [] : [{ name, hasBegun: found.hasBegun }], now);
    if (found !== undefined && place + 1 - found.places > 4 * found.rank)
      late.push(`number ${found.rank} of place ${found.places} began with place ${place}`);
  }
  return late;
}

test("the n-th due run of a function begins with one of 4n places, whether it is new or has begun, and whoever else asks", () => {
  const place = fc.record({
    due: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      fc.array(fc.boolean(), { maxLength: 3 }),
    ),
    isAsked: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(place, { minLength: 20, maxLength: 200 }), (places) => {
      expect(lateRuns(places)).toEqual([]);
    }),
    { numRuns: 500 },
  );
});
