import { isHoldfastError } from "../model/errors.ts";
import { jsonText } from "./text/json.ts";
import { barred, escaped, type Style } from "./text/style.ts";

/** The text of a failure: a line for people, or a document for programs. */
export function failureText(
  error: unknown,
  how: { readonly isJson: boolean; readonly isDebug: boolean; style: Style },
): string {
  const { isJson, isDebug, style } = how;
  const { code, message, details } = factsOf(error);
  const stack = isDebug ? stackOf(error) : undefined;
  if (isJson) return withoutPasswords(jsonText({ error: { code, message, details, stack } }));
  const head = `${style("red", code)}: ${barred(withoutPasswords(message))}`;
  return stack === undefined ? head : `${head}\n${style("dim", stackText(stack))}`;
}

/** Leaves call lines as Node writes them; other lines belong to messages. */
function stackText(stack: string): string {
  return escaped(withoutPasswords(stack).replaceAll(/\r?\n(?!\s+at )/g, "\n│ "));
}

/** Hides passwords, because an error may quote a URL that was typed in the wrong place. */
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
    message: `${message}\nThis is a bug in holdfast. Repeat the command with --debug and report the output.`,
  };
}

function stackOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { stack, cause } = error;
  const below = cause === undefined ? undefined : stackOf(cause);
  return [stack ?? "", ...(below === undefined ? [] : [`caused by ${below}`])].join("\n");
}
