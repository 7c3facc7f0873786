import { expect, test } from "vitest";
import { debtAfter, debtAfterAll, nextKind, noDebt, type DueKind } from "./place-debt.ts";

/** The kinds that get so many places, of those that are due all the time. */
function kindsOf(count: number, due: readonly DueKind[]): string {
  let debt = noDebt;
  let kinds = "";
  for (let place = 0; place < count; place += 1) {
    const next = nextKind(debt);
    const kind = due.find((one) => one === next) ?? due[0] ?? "new";
    debt = debtAfter(debt, kind);
    kinds += kind.slice(0, 1);
  }
  return kinds;
}

test("of every four places three go to runs that have begun, and one to a new run", () => {
  expect(kindsOf(12, ["begun", "new"])).toBe("bbbnbbbnbbbn");
});

test("when one kind is missing the other gets all, and saves up nothing against it", () => {
  expect(kindsOf(9, ["new"])).toBe("nnnnnnnnn");
  expect(debtAfterAll(noDebt, { begun: 0, new: 9 })).toEqual({ begun: 0, new: 0 });
  // The fourth was the turn of a new run.
  expect(debtAfterAll(noDebt, { begun: 3, new: 0 })).toEqual({ begun: 0, new: 3 });
  expect(debtAfterAll(noDebt, { begun: 4, new: 0 })).toEqual({ begun: 0, new: 0 });
});

test("places of others owe a turn to both kinds, which the longest due of both has", () => {
  const owed = { begun: 3, new: 3 };
  expect(nextKind(owed)).toBe("either");
  for (const kind of ["begun", "new"] as const) expect(debtAfter(owed, kind)).toEqual(noDebt);
  expect(nextKind({ begun: 2, new: 3 })).toBe("new");
  expect(nextKind({ begun: 3, new: 2 })).toBe("begun");
});

test("a kind that waited for several turns has them one after the other", () => {
  const owed = { begun: 0, new: 7 };
  expect(debtAfter(owed, "new")).toEqual({ begun: 1, new: 4 });
  expect(debtAfterAll(owed, { begun: 2, new: 2 })).toEqual({ begun: 0, new: 3 });
});
