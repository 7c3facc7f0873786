import type { Question } from "../../../stores/execution/read/questions.ts";
import { oneLine, type Style } from "../../text/style.ts";
import { valueText } from "../../text/value-text.ts";

/** The questions of a run, each with the schema of its answer. */
export function questionLines(questions: readonly Question[], style: Style): readonly string[] {
  if (questions.length === 0) return [];
  const lines = questions.flatMap(({ id, about, schema }) => [
    `${oneLine(id)}  ${about === undefined ? "" : valueText(about)}`.trimEnd(),
    ...(schema === undefined ? [] : [style("dim", `  answer: ${valueText(schema)}`)]),
  ]);
  return [style("bold", "Questions"), ...lines];
}
