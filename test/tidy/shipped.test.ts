import { expect, test } from "vitest";
import { shippedLinks } from "./shipped.ts";
import { treeOf } from "./tree.ts";

const tree = (readme: string, guide = "") =>
  treeOf({
    "package.json": JSON.stringify({
      homepage: "https://example.org/us/it#readme",
      files: ["dist", "docs", "!docs/adr", "examples"],
    }),
    "README.md": readme,
    "docs/guide.md": guide,
    "docs/adr/one.md": "[nowhere](gone.md)",
    "examples/a.ts": "",
    "ARCHITECTURE.md": "",
  });

test("links to files of the package, of the repository and of others are fine", () => {
  const readme =
    "[a](docs/guide.md#top) [b](examples) [c](https://example.org/us/it/blob/main/ARCHITECTURE.md) [d](https://example.com/x.md)";
  expect(shippedLinks(tree(readme, "[a](../README.md) [b](#here) [c](../examples/a.ts)"))).toEqual(
    [],
  );
});

test("a link to a file that is not in the package is reported", () => {
  expect(shippedLinks(tree("[a](ARCHITECTURE.md)", "[b](adr/one.md#why)"))).toEqual([
    'README.md links to ARCHITECTURE.md, which the package lacks: link to https://example.org/us/it/blob/main/ARCHITECTURE.md, or add it to "files" in package.json.',
    'docs/guide.md links to docs/adr/one.md, which the package lacks: link to https://example.org/us/it/blob/main/docs/adr/one.md, or add it to "files" in package.json.',
  ]);
});

test("an address in the repository that leads nowhere is reported", () => {
  expect(shippedLinks(tree("[a](https://example.org/us/it/tree/main/docs/adrs)"))).toEqual([
    "README.md links to https://example.org/us/it/tree/main/docs/adrs, but the repository has no docs/adrs.",
  ]);
});
