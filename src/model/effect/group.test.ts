import { describe, expect, test } from "vitest";
import { decideGroup, groupDifference, nextPlaces } from "./group.ts";
import type { GroupMember, MemberPlace } from "./group.ts";

const place = (ordinal: number, number: number, isSuccess = true): MemberPlace => ({
  ordinal,
  place: number,
  isSuccess,
  attempt: null,
  at: 0,
});

describe("the order of a group", () => {
  test("is that of the instants, and of the names at the same one, behind what has its place", () => {
    expect(
      nextPlaces(2, [
        { ordinal: 4, attempt: 2, isSuccess: true, at: 7 },
        { ordinal: 1, attempt: null, isSuccess: false, at: 7 },
        { ordinal: 3, attempt: 1, isSuccess: true, at: 5 },
      ]),
    ).toEqual([
      { ordinal: 3, attempt: 1, isSuccess: true, at: 5, place: 3 },
      { ordinal: 1, attempt: null, isSuccess: false, at: 7, place: 4 },
      { ordinal: 4, attempt: 2, isSuccess: true, at: 7, place: 5 },
    ]);
    expect(nextPlaces(5, [])).toEqual([]);
  });
});

describe("what a group comes to", () => {
  test("a race is decided by the first place, whatever it came to", () => {
    expect(decideGroup("race", 2, [])).toEqual({ kind: "undecided" });
    expect(decideGroup("race", 2, [place(0, 2), place(1, 1, false)])).toEqual({
      kind: "one",
      ordinal: 1,
    });
  });

  test("all are decided by the first that did not succeed, or by the last", () => {
    expect(decideGroup("all", 3, [place(2, 1), place(0, 2)])).toEqual({
      kind: "undecided",
    });
    expect(decideGroup("all", 3, [place(2, 1), place(0, 3, false), place(1, 2, false)])).toEqual({
      kind: "one",
      ordinal: 1,
    });
    expect(decideGroup("all", 2, [place(1, 1), place(0, 2)])).toEqual({
      kind: "all",
    });
  });
});

describe("two groups under one key", () => {
  const a: GroupMember = { kind: "effect", key: "a", attempts: 1 };
  const b: GroupMember = { kind: "awaitEvent", key: "b" };
  const race = { kind: "race", members: [a, b] } as const;

  test.each([
    [{ kind: "race", members: [a, b] }, undefined],
    [{ kind: "all", members: [a, b] }, "kind"],
    [{ kind: "race", members: [b, a] }, "members[0]"],
    [{ kind: "race", members: [a] }, "members[1]"],
    [{ kind: "race", members: [a, b, b] }, "members[2]"],
    [{ kind: "race", members: [a, { ...a, key: "b" }] }, "members[1]"],
    [{ kind: "race", members: [{ ...a, attempts: 2 }, b] }, "members[0].attempts"],
  ] as const)("%j differs at %s", (given, path) => {
    expect(groupDifference(race, given)).toBe(path);
  });
});
