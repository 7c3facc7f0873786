import { expect, test } from "vitest";
import { undelegatedOperations } from "./operations.ts";
import { treeOf } from "./tree.ts";

const kernel = {
  "src/sql/operation.ts": "export function* run(s: Statement): Tx<number> {}",
  "src/stores/append.ts":
    'import { run } from "../sql/operation.ts";\nexport const append = operation("append", { *one() { yield* run(s); } });',
};

function problemsIn(code: string): readonly string[] {
  return undelegatedOperations(
    treeOf({
      ...kernel,
      "src/stores/create.ts": `import { append } from "./append.ts";\n${code}`,
    }),
  );
}

test.each([
  "function* body() { append(a); }",
  "function* body() { const rows = append(a); }",
  "function* body() { yield append(a); }",
  "function* body() { return append(a); }",
  "function* body() { inputs.forEach((input) => append(input)); }",
  "const later = async () => { await append(a); };",
  "function* body() { const rows = first ? append(a) : undefined; }",
  "database.write(append(a));",
])("%s is reported", (code) => {
  expect(problemsIn(code)).toEqual([
    'src/stores/create.ts:2: append(…) does nothing by itself: write "yield* append(…)", give it to database.write or database.read, or drive it (drive…(append(…))).',
  ]);
});

test.each([
  "function* body() { return yield* append(a); }",
  "database.write(append, a);",
  'database.write("mine", () => append(a));',
  'operation("same", { one: (input) => append(input) });',
  "function again(a: A): Tx<number> { return append(a); }",
  "drive(append(a));",
  "append(a).next();",
  'database.write("mine", () => (first ? append(a) : append(b)));',
  'database.write("mine", append(a) as unknown as () => Tx<void>);',
])("%s is allowed", (code) => {
  expect(problemsIn(code)).toEqual([]);
});

test("an operation that is given a context first is driven after its second call", () => {
  const stores = {
    "src/stores/append.ts": 'export const append = storeOperation("append", { *one() {} });',
  };
  const problems = (code: string): readonly string[] =>
    undelegatedOperations(
      treeOf({
        ...stores,
        "src/stores/create.ts": `import { append as add } from "./append.ts";\n${code}`,
      }),
    );
  expect(problems("function* body() { add(context)(a); }")).toHaveLength(1);
  expect(problems("function* body() { yield* add(context)(a); }")).toEqual([]);
  expect(problems("database.write(add(context), a);")).toEqual([]);
});

test("pieces are followed through doors and other names", () => {
  const tree = treeOf({
    ...kernel,
    "examples/demo.ts":
      'import { run as execute } from "holdfast/kernel";\nfunction* body() { execute(s); }',
    "test/crash/child.ts":
      'import { run } from "../../src/kernel.ts";\nfunction* body() { run(s); }',
  });
  expect(undelegatedOperations(tree)).toHaveLength(2);
});

test("a function that only shares the name is left alone", () => {
  const tree = treeOf({
    ...kernel,
    "scripts/check.ts": "function run(step: string): void {}\nrun(step);",
    "scripts/start.ts": 'import { run } from "./process.ts";\nrun(step);',
    "scripts/process.ts": "export function run(name: string): void {}",
  });
  expect(undelegatedOperations(tree)).toEqual([]);
});
