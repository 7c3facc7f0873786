import type { CliHost, CliStream } from "../host.ts";

const codes = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const;

export type Colour = keyof typeof codes;

/** Paints a text, or leaves it as it is. */
export type Style = (colour: Colour, text: string) => string;

/** Colours only where a person looks, who has not asked for none (https://no-color.org). */
export function styleOf(stream: CliStream, { env }: Pick<CliHost, "env">): Style {
  const isWanted = stream.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  if (!isWanted) return (_, text) => text;
  return (colour, text) => {
    const [on, off] = codes[colour];
    return `\u001B[${on}m${text}\u001B[${off}m`;
  };
}

/**
 * A text of somebody's data, made safe to print: a message may hold codes that
 * clear a terminal or rename its window. Lines and tabs stay.
 */
export function harmless(text: string): string {
  return text.replaceAll(
    // eslint-disable-next-line no-control-regex
    /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200E\u200F\u202A-\u202E\u2066-\u2069]/g,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The same on one line. */
export function oneLine(text: string): string {
  return harmless(text.replaceAll(/\s*\n\s*/g, " ⏎ ").replaceAll("\t", " "));
}
