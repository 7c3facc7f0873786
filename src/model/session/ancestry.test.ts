import { describe, expect, test } from "vitest";
import { isUserMessage, pointAfter } from "./ancestry.ts";
import type { NodePoint } from "./ancestry.ts";

/** A path without branches; keys are depths plus 1,000. */
function path(length: number, role: string = "user"): readonly NodePoint[] {
  const points: NodePoint[] = [];
  for (let depth = 0; depth < length; depth += 1)
    points.push({
      key: 1_000 + depth,
      ...pointAfter(points.at(-1), { kind: "message", role }),
    });
  return points;
}

describe("the point of a node", () => {
  test("at a root has nowhere to jump to", () => {
    expect(path(1)).toEqual([{ key: 1_000, depth: 0, skip: null, far: null, messages: 1 }]);
  });

  test("leads up to the nearest ancestors at multiples of 64 and 4,096, itself excluded", () => {
    const points = path(8_200, "assistant");
    const at = (depth: number): unknown => points[depth];
    const first = { key: 1_001, depth: 1, skip: 1_000, far: 1_000 };
    expect(at(1)).toEqual({ ...first, messages: 0 });
    expect(at(64)).toMatchObject({ skip: 1_000, far: 1_000 });
    expect(at(65)).toMatchObject({ skip: 1_064, far: 1_000 });
    expect(at(4_096)).toMatchObject({ skip: 5_032, far: 1_000 });
    expect(at(4_097)).toMatchObject({ skip: 5_096, far: 5_096 });
    expect(at(8_199)).toMatchObject({ skip: 9_192, far: 9_192 });
  });

  test("counts the messages of users on the way, and only those", () => {
    const root = path(1)[0];
    expect(pointAfter(root, { kind: "message", role: "user" }).messages).toBe(2);
    expect(pointAfter(root, { kind: "tool", role: "user" }).messages).toBe(1);
    expect(isUserMessage({ kind: "message" })).toBe(false);
  });
});
