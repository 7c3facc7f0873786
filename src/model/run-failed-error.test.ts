import { expect, test } from "vitest";
import { isHoldfastError } from "./errors.ts";
import { RunFailedError } from "./run-failed-error.ts";

const run = { id: "order-42", function: "fulfil", kind: "failed" } as const;

test("a failure that is made by hand tells the run, and where it was thrown", () => {
  const cause = new Error("no money");
  const at = { step: "charge", attempt: 3 };
  expect(new RunFailedError("it failed", { run, at, cause })).toMatchObject({
    message: "it failed",
    runId: "order-42",
    function: "fulfil",
    kind: "failed",
    step: "charge",
    attempt: 3,
    cause,
  });
});

test("a failure of no run is refused by a code", () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  for (const given of [
    undefined,
    null,
    "failed",
    {},
    { run: null },
    { run: { ...run, kind: "gone" } },
    { run, at: null },
    { run, at: proxy },
    { run: proxy },
    proxy,
  ])
    expect(() => new RunFailedError("it failed", given as never)).toThrow(
      expect.toSatisfy(isHoldfastError),
    );
});

test("a failure takes any message", () => {
  for (const [given, text] of [
    [Symbol("s"), "Symbol(s)"],
    [Object.create(null), ""],
    [5, "5"],
  ] as const)
    expect(new RunFailedError(given as never, { run }).message).toBe(text);
});
