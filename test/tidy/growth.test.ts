import { expect, test } from "vitest";
import { growthTable, partFigures, renderGrowth, unexplainedGrowth } from "./growth.ts";
import { treeOf } from "./tree.ts";

const line = "export const a = 1;\n";

test("parts are aggregates of the stores and folders of the other floors, without tests and doors", () => {
  const figures = partFigures(
    treeOf({
      "src/index.ts": line,
      "src/model/lease.ts": `/** Explains a lot. */\n${line}// And more.\n`,
      "src/model/lease.test.ts": line,
      "src/stores/queue/queue.ts": line,
      "src/stores/queue/claim/claim.ts": line.repeat(2),
      "src/stores/list.ts": line,
      "src/sql/migrations.generated.ts": line,
    }),
  );
  expect([...figures]).toEqual([
    ["model", { files: 1, lines: 3, tokens: 6 }],
    ["stores", { files: 1, lines: 1, tokens: 6 }],
    ["stores/queue", { files: 2, lines: 3, tokens: 18 }],
  ]);
});

test("a part that grew by more than 2 % is reported until the table says so", () => {
  const before = { "src/model/a.ts": line.repeat(10_000), "src/sql/b.ts": line };
  const table = renderGrowth(partFigures(treeOf(before)));
  const grown = (lines: number) =>
    treeOf({ ...before, [growthTable]: table, "src/model/c.ts": line.repeat(lines) });
  expect(unexplainedGrowth(grown(250))).toEqual([]);
  expect(unexplainedGrowth(grown(251))).toEqual([
    "src/model has 61506 tokens, and test/tidy/growth.txt says 60000: make it smaller, or run `npm run growth` and say in the commit what the growth is for.",
  ]);
});

test("a new part and one that is gone are reported", () => {
  const table = renderGrowth(partFigures(treeOf({ "src/model/a.ts": line })));
  expect(unexplainedGrowth(treeOf({ [growthTable]: table, "src/http/a.ts": line }))).toEqual([
    "src/http has 6 tokens, and test/tidy/growth.txt says 0: make it smaller, or run `npm run growth` and say in the commit what the growth is for.",
    "test/tidy/growth.txt names src/model, which is gone: run `npm run growth`.",
  ]);
});
