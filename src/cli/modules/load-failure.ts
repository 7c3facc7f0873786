import { spawnSync } from "node:child_process";
import { isHoldfastError } from "../../model/errors.ts";

/**
 * Why a module could not be loaded, with the place in it, on a few lines. Of a
 * mistake in plain JavaScript Node tells the place only when it runs the file
 * itself, so it is asked to.
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
  // A user who is told how to load TypeScript needs no stack of Node's.
  if ("code" in cause && isHoldfastError(error)) {
    const isOwnAdvice = !error.message.includes(cause.message);
    if (isOwnAdvice) return error.message;
  }
  return withoutOthers(cause.stack ?? cause.message);
}

/** What `node --check` has against a file. */
function checked(file: string): string {
  const { status, stderr } = spawnSync(process.execPath, ["--check", file], {
    encoding: "utf8",
    timeout: 10_000,
  });
  return status === 0 ? "" : withoutOthers(stderr);
}

/** Without the lines about the code of Node, packages and ours. */
function withoutOthers(stack: string): string {
  return stack
    .split("\n")
    .filter((line) => !/^\s+at .*(node:|node_modules|data:)|^Node\.js v/.test(line))
    .join("\n")
    .trim();
}
