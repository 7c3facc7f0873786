import { isStoredError } from "../../model/values/restored-error.ts";
import type { StoredError } from "../../model/values/stored-error.ts";
import { jsonText } from "./json.ts";
import { barred, oneLine, type Style } from "./style.ts";

const valueCharactersMax = 2_000;

/** A value on one line, cut if long; `--json` shows all of it. */
export function valueText(value: unknown): string {
  const text = value === undefined ? "undefined" : jsonText(value);
  return oneLine(
    text.length <= valueCharactersMax
      ? text
      : `${text.slice(0, valueCharactersMax)}… (${text.length} characters; --json shows all)`,
  );
}

const causesMax = 8;
const stackLinesMax = 6;

/** An error for people: message, then place, then causes. */
export function errorLines(error: StoredError, style: Style, depth = 0): readonly string[] {
  const head = depth === 0 ? "" : "caused by ";
  const code = error.code === undefined ? "" : ` [${error.code}]`;
  const place = placeOf(error);
  return [
    `${style("dim", head)}${style("red", oneLine(`${error.name}${code}`))}: ${barred(error.message)}`,
    ...(place === undefined ? [] : [style("dim", `  ${place}`)]),
    ...(error.data === undefined ? [] : [style("dim", `  data ${valueText(error.data)}`)]),
    ...stackLines(error).map((line) => style("dim", `  ${line}`)),
    ...(isStoredError(error.cause) && depth < causesMax
      ? errorLines(error.cause, style, depth + 1)
      : []),
  ];
}

function placeOf({ at }: StoredError): string | undefined {
  if (at === undefined) return undefined;
  const step = at.step === undefined ? "" : `step "${at.step}", `;
  return oneLine(`in ${step}attempt ${at.attempt}`);
}

/** The calls of a stack, the user's own first, since those of Node and Holdfast say little. */
function stackLines({ stack }: StoredError): readonly string[] {
  const calls = (stack ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("at "));
  const own = calls.filter((line) => !/\bnode:|[/\\]node_modules[/\\]/.test(line));
  return (own.length > 0 ? own : calls).slice(0, stackLinesMax).map(oneLine);
}
