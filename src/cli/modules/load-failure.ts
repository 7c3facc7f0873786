import { spawnSync } from "node:child_process";
import { isHoldfastError } from "../../model/errors.ts";

/**
 * The reason why a module could not be loaded, with its position, on a few
 * lines. For a syntax error in plain JavaScript, Node reports the position only
 * when it runs the file itself, so this asks Node to.
 */
export function loadFailureText(error: unknown, files: readonly string[]): string {
  const cause = isHoldfastError(error) ? error.cause : error;
  if (!(cause instanceof Error)) return (error as Error).message;
  if (cause.name === "SyntaxError" && !/^file:|^\//.test(cause.stack ?? "")) {
    const place = files
      .filter((file) => /\.[cm]?jsx?$/.test(file))
      .map(checked)
      .find((text) => text !== "");
    if (place !== undefined) return place;
  }
  // Advice on loading TypeScript needs no stack of Node.
  if ("code" in cause && isHoldfastError(error)) {
    const isOwnAdvice = !error.message.includes(cause.message);
    if (isOwnAdvice) return error.message;
  }
  return withoutOthers(cause.stack ?? cause.message);
}

/** The complaint of `node --check` about a file. */
function checked(file: string): string {
  const { status, stderr } = spawnSync(process.execPath, ["--check", file], {
    encoding: "utf8",
    timeout: 10_000,
  });
  return status === 0 ? "" : withoutOthers(stderr);
}

/** Removes the stack lines of Node, packages and Holdfast. */
function withoutOthers(stack: string): string {
  return stack
    .split("\n")
    .filter((line) => !/^\s+at .*(node:|node_modules|data:)|^Node\.js v/.test(line))
    .join("\n")
    .trim();
}
