import type { Tree } from "./tree.ts";

/** A summary that begins so is a clause without a subject, which readers take for a translation. */
const clauseStart =
  /^(What|Whatever|Whoever|Who|Whom|How|Of|Those|Whether|Why|By|Where|Which|Whose|When)\b/;

/** The share of summaries that may begin so, for the few where nothing else is as clear. */
const clauseShareMax = 0.05;

const summary = /\/\*\*\s*(?:\*\s+)?([^\s*][^\n]*)/g;

/** The doc comments that begin with a clause, when there are too many of them. */
export function clausesForSummaries(tree: Tree): readonly string[] {
  let count = 0;
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!file.startsWith("src/") || !file.endsWith(".ts")) continue;
    for (const { 1: words = "" } of text.matchAll(summary)) {
      count += 1;
      if (clauseStart.test(words))
        problems.push(
          `${file}: "${words.slice(0, 60)}": begin with a noun, or with a verb in the third person.`,
        );
    }
  }
  return problems.length > count * clauseShareMax ? problems : [];
}

/** Words that read as translated, each with a plain one. */
const translated: readonly (readonly [RegExp, string])[] = [
  [/\bgoes on where\b/i, "resumes"],
  [/\bdone with\b/i, "settled, or no longer needed"],
  [/\bmakes no sense\b/i, "is inconsistent"],
  [/\baftermaths?\b/i, "outcome"],
  [/\bin somebody's hands\b/i, "held"],
  [/\bhas another hash\b/i, "does not match its hash"],
];

/** The lines of code and docs that have such a word. */
export function translatedWords(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!/^(src|docs|examples|[A-Z])/.test(file) || !/\.(ts|md)$/.test(file)) continue;
    // A decision keeps the words of its day.
    if (file.startsWith("docs/adr/")) continue;
    text.split("\n").forEach((line, index) => {
      for (const [pattern, plain] of translated) {
        const found = pattern.exec(line)?.[0];
        if (found !== undefined)
          problems.push(`${file}:${index + 1}: "${found}": write "${plain}".`);
      }
    });
  }
  return problems;
}
