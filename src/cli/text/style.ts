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

/** Paints a text, or returns it unchanged. */
export type Style = (colour: Colour, text: string) => string;

/** Paints only on a terminal without NO_COLOR (https://no-color.org). */
export function styleOf(stream: CliStream, { env }: Pick<CliHost, "env">): Style {
  const isWanted = stream.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  if (!isWanted) return (_, text) => text;
  return (colour, text) => {
    const [on, off] = codes[colour];
    return `\u001B[${on}m${text}\u001B[${off}m`;
  };
}

/**
 * Escapes characters that clear a terminal, rename its window, end a line or
 * reorder text. Line feeds and tabs stay. The escapes are those of JSON.
 */
export function escaped(text: string): string {
  return text.replaceAll(
    // oxlint-disable-next-line no-control-regex -- They are what is escaped.
    /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** User text as a field of one line: line ends in it are replaced. */
export function oneLine(text: string): string {
  return escaped(text.replaceAll(/\r?\n/g, " ⏎ ").replaceAll("\t", " "));
}

/** User text of several lines, such as a message: a bar marks each line after the first. */
export function barred(text: string): string {
  return escaped(text.replaceAll(/\r?\n/g, "\n│ "));
}

// oxlint-disable-next-line no-control-regex -- What colours are made of.
const colours = /\u001b\[[\d;]*m/g;

/** Keeps colours and escapes all other control characters. */
export function withColoursOnly(text: string): string {
  const found = text.match(colours) ?? [];
  return text
    .split(colours)
    .map((part, index) => escaped(part) + (found[index] ?? ""))
    .join("");
}
