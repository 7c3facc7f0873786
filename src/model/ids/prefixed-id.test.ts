import { describe, expect, test } from "vitest";
import { parseDeploymentId, parseExecutorId, parseRunId } from "./prefixed-id.ts";

const ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

describe.each([
  ["executor", "Exr", parseExecutorId],
  ["run", "Run", parseRunId],
  ["deployment", "Dep", parseDeploymentId],
] as const)("an %s id", (_, prefix, parse) => {
  test("is its prefix and a ULID, 30 characters", () => {
    expect(parse(`${prefix}_${ulid}`)).toBe(`${prefix}_${ulid}`);
    expect(parse(`${prefix}_${ulid}`)).toHaveLength(30);
  });

  test.each([`E_${ulid}`, ulid, `${prefix}${ulid}`, `x${prefix}_${ulid}`, ""])(
    "with the wrong prefix is refused: %s",
    (text) => {
      expect(() => parse(text)).toThrow(
        expect.objectContaining({
          code: "ID_MALFORMED",
          details: expect.objectContaining({ reason: "prefix" }),
        }),
      );
    },
  );

  test.each([`${prefix}_`, `${prefix}_${ulid}0`, `${prefix}_${ulid} `])(
    "with a bad ULID is refused differently: %s",
    (text) => {
      expect(() => parse(text)).toThrow(
        expect.objectContaining({
          code: "ID_MALFORMED",
          details: expect.objectContaining({ reason: "ulid" }),
        }),
      );
    },
  );
});

test("the error shows what was given, cut when long, and what is accepted", () => {
  expect(() => parseRunId("order-42")).toThrow(
    'Expected a run id such as "Run_01ARZ3NDEKTSV4RRFFQ69G5FAV", got "order-42": it has another prefix.',
  );
  expect(() => parseRunId("x".repeat(1_000))).toThrow(`got "${"x".repeat(80)}…"`);
});
