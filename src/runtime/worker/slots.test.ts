import { expect, test } from "vitest";
import { Slots } from "./slots.ts";

test("those who need their place no more give it on, however many they are", () => {
  const slots = new Slots(1);
  slots.take();
  const asked = 100_000;
  let called = 0;
  for (let n = 0; n < asked; n += 1)
    slots.again(() => {
      called += 1;
      slots.give();
    });
  slots.give();
  expect(called).toBe(asked);
  expect(slots.free).toBe(1);
});

test("a place goes to who asked first, and is free when nobody asks", () => {
  const slots = new Slots(1);
  const got: string[] = [];
  slots.take();
  slots.again(() => got.push("first"));
  slots.again(() => got.push("second"));
  expect(slots.free).toBe(0);
  slots.give();
  expect(got).toEqual(["first"]);
  slots.give();
  slots.give();
  expect(got).toEqual(["first", "second"]);
  expect(slots.free).toBe(1);
});
