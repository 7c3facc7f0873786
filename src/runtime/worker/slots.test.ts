import { expect, test } from "vitest";
import { Slots } from "./slots.ts";

/** Places of a worker that serves `f` and `g`, on a clock that stands at 1,000. */
function placesOf(size: number): Slots {
  return new Slots(size, ["f", "g"], () => 1_000);
}

function lasting(): AbortSignal {
  return new AbortController().signal;
}

/** Takes the places for a look as a worker does. */
function claimOf(slots: Slots, max = 100) {
  void slots.freed(lasting());
  const claim = slots.claim(max);
  if (claim === undefined) throw new Error("There was no place for a look.");
  return claim;
}

test("runs that need their place no more give it on, however many they are", () => {
  const slots = placesOf(1);
  slots.take("f");
  const asked = 100_000;
  let called = 0;
  for (let n = 0; n < asked; n += 1)
    slots.again("f", () => {
      called += 1;
      slots.give("f");
    });
  slots.give("f");
  expect(called).toBe(asked);
  expect(slots.free).toBe(1);
});

test("a place goes to the run of a function that asked first, and is free when none asks", () => {
  const slots = placesOf(1);
  const got: string[] = [];
  slots.take("f");
  slots.again("f", () => got.push("first"));
  slots.again("f", () => got.push("second"));
  expect(slots.free).toBe(0);
  slots.give("f");
  expect(got).toEqual(["first"]);
  slots.give("f");
  slots.give("f");
  expect(got).toEqual(["first", "second"]);
  expect(slots.free).toBe(1);
});

test("a look takes all free places of all functions, and gives back those it finds nothing for", () => {
  const slots = placesOf(5);
  slots.take("f");
  const claim = claimOf(slots);
  expect(claim.count).toBe(4);
  expect([...claim.functions]).toEqual(["f", "g"]);
  expect(slots.free).toBe(0);
  slots.begin("g");
  slots.looked(claim, [{ name: "g", hasBegun: false }]);
  expect(slots.free).toBe(3);
  expect(claimOf(slots, 2).count).toBe(2);
});

test("a failed look gives all its places back", () => {
  const slots = placesOf(3);
  slots.looked(claimOf(slots), undefined);
  expect(slots.free).toBe(3);
});

test("a worker that waits for a place is told of the next one, before anything starts here", async () => {
  const slots = placesOf(1);
  slots.take("f");
  const freed = slots.freed(lasting());
  slots.give("f");
  expect(slots.free).toBe(0);
  await freed;
  const claim = slots.claim(100);
  expect(claim?.count).toBe(1);
});

test("a worker that is told to stop waits for no place", async () => {
  const slots = placesOf(1);
  slots.take("f");
  const stop = new AbortController();
  const freed = slots.freed(stop.signal);
  stop.abort();
  await freed;
  expect(slots.claim(100)).toBeUndefined();
  await slots.freed(stop.signal);
});

test("a place that is kept for a look goes back to runs that ask when the worker rests", () => {
  const slots = placesOf(1);
  const got: number[] = [];
  slots.take("f");
  void slots.freed(lasting());
  for (let n = 0; n < 6; n += 1) slots.again("f", () => got.push(n));
  slots.give("f");
  // The function without runs comes first, so the only place is kept for a look.
  expect(got).toEqual([]);
  slots.rest();
  expect(got).toEqual([0]);
  for (let n = 0; n < 5; n += 1) slots.give("f");
  expect(got).toEqual([0, 1, 2, 3, 4, 5]);
});

test("a worker with no free place claims only those that are kept, for the functions they are kept for", () => {
  const slots = placesOf(3);
  for (let n = 0; n < 3; n += 1) slots.take("f");
  void slots.freed(lasting());
  for (let n = 0; n < 6; n += 1) slots.again("f", () => undefined);
  expect(slots.claim(100)).toBeUndefined();
  void slots.freed(lasting());
  for (let n = 0; n < 3; n += 1) slots.give("f");
  const claim = slots.claim(100);
  expect(claim?.count).toBe(1);
  expect([...(claim?.functions ?? [])]).toEqual(["g"]);
});

test("nothing is started here while resumed runs ask, also by a run that has just got its place", () => {
  const slots = placesOf(2);
  const free: number[] = [];
  slots.keepOut();
  for (let n = 0; n < 2; n += 1) slots.again("f", () => free.push(slots.free));
  slots.letIn();
  expect(free).toEqual([0, 0]);
});

test("a look is for the functions that its own places are kept for, and not for those of the look before", () => {
  const slots = placesOf(1);
  slots.take("f");
  void slots.freed(lasting());
  for (let n = 0; n < 10; n += 1) slots.again("f", () => undefined);
  slots.give("f");
  const looks: string[][] = [];
  while (looks.length < 5) {
    void slots.freed(lasting());
    const claim = slots.claim(1);
    if (claim === undefined) {
      slots.give("f");
      continue;
    }
    looks.push([...claim.functions]);
    const name = claim.functions.has("g") ? "g" : "f";
    slots.begin(name);
    slots.looked(claim, [{ name, hasBegun: false }]);
    slots.give(name);
  }
  // They take turns, and after three resumed runs of `f` its due work is owed a place.
  expect(looks).toEqual([["g"], ["g"], ["g"], ["f", "g"], ["f"]]);
});

test("a look that finds nothing cancels what is owed, but not to functions that a limit keeps waiting", () => {
  const slots = placesOf(8);
  const find = (...names: readonly string[]): void => {
    const claim = claimOf(slots, 2);
    const found = names.map((name) => ({ name, hasBegun: true }));
    slots.looked(claim, found, new Set(["f"]));
  };
  for (let n = 0; n < 2; n += 1) {
    find("f", "g");
    find();
  }
  expect(slots.debtOf("f")).toEqual({ begun: 0, new: 2 });
  expect(slots.debtOf("g")).toEqual({ begun: 0, new: 0 });
});

test("a function that a limit keeps waiting gets one look in 50 ms, and no places of others meanwhile", () => {
  let now = 1_000;
  const slots = new Slots(10, ["f", "g"], () => now);
  const limited = new Set(["f"]);
  slots.begin("f");
  slots.looked(claimOf(slots, 10), [{ name: "f", hasBegun: false }], limited);
  let running = 0;
  for (let n = 0; n < 22; n += 1) slots.again("g", () => (running += 1));
  const looks = (): number => {
    for (let count = 0; ; count += 1) {
      void slots.freed(lasting());
      const claim = slots.claim(10);
      if (claim === undefined || count === 100) return count;
      slots.looked(claim, [], limited);
    }
  };
  expect(looks()).toBe(1);
  expect(running).toBe(9);
  now = 1_049;
  expect(looks()).toBe(0);
});
