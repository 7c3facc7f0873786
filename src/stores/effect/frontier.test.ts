import { expect, test } from "vitest";
import type { SessionId } from "../../model/ids/session-id.ts";
import type { EffectRef } from "./effect-row.ts";
import { Frontier } from "./frontier.ts";

function ref(replayKey: string, id = "t1", attempt = 1): EffectRef {
  const session = { id: "s" as SessionId };
  return { scope: { kind: "turn", id, session }, replayKey, attempt };
}

test("a scope is past its record once something new was claimed, for keys that were not", () => {
  const frontier = new Frontier();
  expect(frontier.isPast(ref("a"))).toBe(false);
  frontier.advance(ref("a"));
  expect(frontier.isPast(ref("a"))).toBe(false);
  expect(frontier.isPast(ref("b"))).toBe(true);
  expect(frontier.isPast(ref("a", "t1", 2))).toBe(true);
  expect(frontier.isPast(ref("b", "t2"))).toBe(false);
  const other = { ...ref("b"), scope: { ...ref("b").scope, kind: "drain" } };
  expect(frontier.isPast(other)).toBe(false);
  frontier.retreat(ref("c"));
  expect(frontier.isPast(ref("b"))).toBe(false);
});

test("it forgets the oldest scope, and one that grows too long", () => {
  const frontier = new Frontier();
  for (let scope = 0; scope <= 500; scope += 1) frontier.advance(ref("a", `t${scope}`));
  expect(frontier.isPast(ref("b", "t0"))).toBe(false);
  expect(frontier.isPast(ref("b", "t1"))).toBe(true);
  for (let key = 0; key < 200; key += 1) frontier.advance(ref(`k${key}`));
  expect(frontier.isPast(ref("b"))).toBe(false);
});
