import { isHoldfastError } from "../model/errors.ts";
import { jsonText } from "./text/json.ts";
import { harmless, type Style } from "./text/style.ts";

/** How a failure is told: a line for people, or a document for programs. */
export function failureText(
  error: unknown,
  how: { readonly isJson: boolean; readonly isDebug: boolean; style: Style },
): string {
  const { isJson, isDebug, style } = how;
  const { code, message, details } = factsOf(error);
  const stack = isDebug ? stackOf(error) : undefined;
  if (isJson) return withoutPasswords(jsonText({ error: { code, message, details, stack } }));
  const shown = (text: string): string => harmless(withoutPasswords(text));
  const head = `${style("red", code)}: ${shown(message)}`;
  return stack === undefined ? head : `${head}\n${style("dim", shown(stack))}`;
}

/** A URL that was typed in a wrong place comes back in what is said of it. */
function withoutPasswords(text: string): string {
  return text
    .replaceAll(/(\w:\/{1,2}[^\s/:@"']*):[^\s"']*@/g, "$1:…@")
    .replaceAll(/(password=)[^&\s"']*/gi, "$1…");
}

function factsOf(error: unknown): {
  readonly code: string;
  readonly message: string;
  readonly details?: object;
} {
  if (isHoldfastError(error)) {
    const { code, message, details } = error;
    return { code, message, details };
  }
  const message = error instanceof Error ? error.message : String(error);
  return {
    code: "UNEXPECTED",
    message: `${message}\nThis is a mistake of holdfast: repeat it with --debug and report what it says.`,
  };
}

function stackOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { stack, cause } = error;
  const below = cause === undefined ? undefined : stackOf(cause);
  return [stack ?? "", ...(below === undefined ? [] : [`caused by ${below}`])].join("\n");
}
