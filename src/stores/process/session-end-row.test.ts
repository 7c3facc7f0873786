import { expect, test } from "vitest";
import { addedProcesses, noProcesses } from "./session-end-row.ts";

const ids = (from: number, count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => `p${100_000 + from + n}`);

test("two reports are one: sums, and each id once, in order", () => {
  const one = { ...noProcesses, revoked: 2, orphaned: ["b", "c"] };
  const other = { ...noProcesses, revoked: 1, wakes: 3, orphaned: ["a", "b"] };
  expect(addedProcesses(one, other)).toEqual({
    revoked: 3,
    wakes: 3,
    orphaned: ["a", "b", "c"],
    preserved: [],
    hasMore: false,
  });
});

test.each(["orphaned", "preserved"] as const)(
  "10,000 of what is %s are kept, and it is told that there were more, from then on",
  (kind) => {
    const full = addedProcesses(
      { ...noProcesses, [kind]: ids(0, 5_000) },
      { ...noProcesses, [kind]: ids(5_000, 5_000) },
    );
    expect(full).toMatchObject({ hasMore: false });
    const cut = addedProcesses(full, { ...noProcesses, [kind]: ["p0"] });
    expect(cut).toEqual({
      ...noProcesses,
      [kind]: ["p0", ...ids(0, 9_999)],
      hasMore: true,
    });
    expect(addedProcesses(cut, noProcesses)).toMatchObject({ hasMore: true });
    expect(addedProcesses(noProcesses, cut)).toMatchObject({ hasMore: true });
  },
);
