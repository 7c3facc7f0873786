import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AnswerWatch } from "./answer-watch.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a statement is overdue once per time limit, until it is answered", () => {
  const overdue: number[] = [];
  const watch = new AnswerWatch(
    1_000,
    () => 0,
    (timeouts) => overdue.push(timeouts),
  );
  watch.asked();
  vi.advanceTimersByTime(1_000);
  expect(overdue).toEqual([]);
  vi.advanceTimersByTime(2_500);
  expect(overdue).toEqual([1, 2, 3]);
  watch.answered();
  vi.advanceTimersByTime(10_000);
  expect(overdue).toEqual([1, 2, 3]);
});

test("an answer that arrives in pieces is not silence, however long it takes", () => {
  const overdue: number[] = [];
  let bytes = 0;
  const watch = new AnswerWatch(
    1_000,
    () => bytes,
    (timeouts) => overdue.push(timeouts),
  );
  watch.asked();
  for (let piece = 0; piece < 20; piece += 1) {
    bytes += 1;
    vi.advanceTimersByTime(900);
  }
  expect(overdue).toEqual([]);
  vi.advanceTimersByTime(1_000);
  expect(overdue).toEqual([1]);
  watch.stop();
});

test("each statement has a time limit of its own", () => {
  const overdue: number[] = [];
  const watch = new AnswerWatch(
    1_000,
    () => 0,
    (timeouts) => overdue.push(timeouts),
  );
  for (let statement = 0; statement < 20; statement += 1) {
    watch.asked();
    vi.advanceTimersByTime(900);
    watch.answered();
  }
  expect(overdue).toEqual([]);
});
