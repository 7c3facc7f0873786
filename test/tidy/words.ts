import { isGenerated, isTest } from "./tree.ts";
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
  [/\b(goes|go|went|going) on\b/i, "continues, or resumes"],
  [/\bdone with\b/i, "settled, or no longer needed"],
  [/\bmakes no sense\b/i, "is inconsistent"],
  [/\baftermaths?\b/i, "outcome"],
  [/\bin somebody's hands\b/i, "held"],
  [/\bhas another hash\b/i, "does not match its hash"],
  [/\bwhoever\b|\bwhom\b|\bwho asks\b/i, "the caller, a worker, or another noun"],
  [/\b(nobody|somebody|anybody)\b/i, "no caller, another worker, or another noun"],
  [/\bin vain\b/i, "without success"],
  [/\bfor ever\b/i, "forever"],
  [/\bso many\b/i, "the number, or the limit"],
  [/\banew\b/i, "again"],
  // A loop over names may have it.
  [/(?<!const )\b(told|tells?) of\b/i, "reports, or notifies"],
  [/\btold apart\b/i, "distinguished"],
  [/\b(given|gives?|gave|giving) back\b/i, "releases"],
  [/\blets? go of\b/i, "releases"],
  // The name of a file may have it.
  [/(?<!-)\bmend(s|ed|ing)?\b/i, "fixes"],
  [/\btakes? up (no )?work\b/i, "accepts work"],
  [/\btrying again\b/i, "retrying"],
  [/\b(put|puts) right\b/i, "fixes"],
  [/\bleft alone\b/i, "skipped, or left unchanged"],
  [/\blooked at\b/i, "read, checked, or inspected"],
  [/\bpass(es|ed)? over\b/i, "skips"],
  [/\bheld to\b/i, "checked against"],
  [/\bthere (is|are|was|were) not\b|\bnone that there is\b/i, "unknown, or missing"],
  [/\bis no (text|list|object|number|error|JSON|instant|event)\b/i, "is not a ..."],
  [/\bat (this|that) very\b/i, "at this, or just"],
  [/\b(half a character|halves of characters)\b/i, "lone surrogate"],
];

/** The lines of code and docs that have such a word. */
export function translatedWords(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!/^(src|docs|examples|skills|llms|[A-Z])/.test(file)) continue;
    if (!/\.(ts|js|sql|md|txt)$/.test(file) || isTest(file) || isGenerated(file)) continue;
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
