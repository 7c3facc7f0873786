import fc from "fast-check";
import type { Node } from "./program.ts";

const small = fc.integer({ min: 0, max: 5 });

const leaf: fc.Arbitrary<Node> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("step" as const),
      how: fc.constantFrom(
        "sync" as const,
        "async" as const,
        "async" as const,
        "fails" as const,
        "flaky" as const,
      ),
      announced: fc.boolean(),
      value: small,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("transaction" as const),
      fails: fc.boolean(),
      stores: fc.constantFrom("none" as const, "reads" as const, "sends" as const),
      value: small,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("sleep" as const), ms: small }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("child" as const),
      value: small,
      ms: small,
      fails: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("activity" as const),
      value: small,
      fails: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("receive" as const),
      timeoutMs: fc.integer({ min: 1, max: 20 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("question" as const),
      timeoutMs: fc.integer({ min: 1, max: 20 }),
    }),
  },
  { weight: 2, arbitrary: fc.constant<Node>({ kind: "draw" }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("awaits" as const),
      count: fc.integer({ min: 1, max: 40 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("forgotten" as const),
      announced: fc.boolean(),
      value: small,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("patch" as const),
      id: fc.constantFrom("a", "b"),
    }),
  },
);

/** A few nodes, nested at most three deep. */
export const programs: fc.Arbitrary<readonly Node[]> = fc.letrec<{
  nodes: readonly Node[];
  node: Node;
}>((tie) => ({
  nodes: fc.array(tie("node"), { minLength: 1, maxLength: 4 }),
  node: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 3, arbitrary: leaf },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom("all" as const, "race" as const, "settled" as const),
        branches: fc.array(tie("nodes"), { minLength: 1, maxLength: 3 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("loop" as const),
        times: fc.integer({ min: 1, max: 3 }),
        body: tie("nodes"),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("choice" as const),
        even: tie("nodes"),
        odd: tie("nodes"),
      }),
    },
  ),
})).nodes;

/**
 * What takes the same way whatever the timing is: one thing after the other,
 * all of it awaited, and no ping that may come before or after a wait. The step at the end has seen all that came before.
 */
export const sequences: fc.Arbitrary<readonly Node[]> = fc
  .array(
    leaf.filter(
      (node) =>
        node.kind !== "forgotten" && !(node.kind === "transaction" && node.stores === "sends"),
    ),
    { minLength: 1, maxLength: 8 },
  )
  .map((nodes) => [...nodes, { kind: "step", how: "sync", announced: false, value: 0 }]);
