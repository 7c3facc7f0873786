import { isCode, isGenerated, isTest } from "./tree.ts";
import type { Tree } from "./tree.ts";

/** The committed figures, written by `npm run growth`. */
export const growthTable = "test/tidy/growth.txt";

/** Growth that needs no reason. */
const growthMax = 0.02;

/** A part this small may gain a function without a reason. */
const tokensFree = 300;

interface Figures {
  readonly files: number;
  readonly lines: number;
  readonly tokens: number;
}

/** Files, lines and tokens of each part of src: an aggregate of the stores, a folder of another floor. */
export function partFigures(tree: Tree): ReadonlyMap<string, Figures> {
  const parts = new Map<string, Figures>();
  for (const [file, text] of tree) {
    const part = partOf(file);
    if (part === undefined || !isCode(file) || isTest(file) || isGenerated(file)) continue;
    const before = parts.get(part) ?? { files: 0, lines: 0, tokens: 0 };
    parts.set(part, {
      files: before.files + 1,
      lines: before.lines + text.trimEnd().split("\n").length,
      tokens: before.tokens + tokensIn(text),
    });
  }
  return new Map([...parts].toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Words, numbers and signs outside of comments. A sentence that explains is not growth. */
function tokensIn(text: string): number {
  const code = text.replaceAll(/\/\*\*?[^]*?\*\/|^\s*\/\/.*$/gm, "");
  return code.match(/\w+|[^\s\w]/g)?.length ?? 0;
}

function partOf(file: string): string | undefined {
  const [top, floor, folder, ...rest] = file.split("/");
  if (top !== "src" || folder === undefined) return undefined;
  const isDivided = floor === "stores" || floor === "runtime" || floor === "backends";
  return isDivided && rest.length > 0 ? `${floor}/${folder}` : floor;
}

/** The table as it is committed: a part, its files, its lines and its tokens in each line. */
export function renderGrowth(parts: ReadonlyMap<string, Figures>): string {
  const row = (cells: readonly (string | number)[]): string =>
    cells
      .map((cell, index) => (index === 0 ? `${cell}`.padEnd(24) : `${cell}`.padStart(8)))
      .join("");
  const rows = [...parts].map(([part, { files, lines, tokens }]) =>
    row([part, files, lines, tokens]),
  );
  return [row(["part", "files", "lines", "tokens"]), ...rows, ""].join("\n");
}

/** The parts that grew beyond the committed figures. */
export function unexplainedGrowth(tree: Tree): readonly string[] {
  const committed = readTable(tree.get(growthTable) ?? "");
  const problems: string[] = [];
  for (const [part, { tokens }] of partFigures(tree)) {
    const before = committed.get(part) ?? 0;
    if (tokens <= before * (1 + growthMax) + (before > 0 ? tokensFree : 0)) continue;
    problems.push(
      `src/${part} has ${tokens} tokens, and ${growthTable} says ${before}: make it smaller, or run \`npm run growth\` and say in the commit what the growth is for.`,
    );
  }
  for (const part of committed.keys())
    if (!partFigures(tree).has(part))
      problems.push(`${growthTable} names src/${part}, which is gone: run \`npm run growth\`.`);
  return problems;
}

function readTable(text: string): ReadonlyMap<string, number> {
  const rows = text
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/));
  return new Map(rows.flatMap(([part, , , tokens]) => (part ? [[part, Number(tokens)]] : [])));
}
