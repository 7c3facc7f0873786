import { HoldfastError } from "../errors.ts";
import { pathText, type PathStep } from "./value-path.ts";

export interface ValueLimits {
  /**
   * The longest text of a value, in characters (UTF-16 units, which cost nothing to count; on disk
   * each takes one to three bytes).
   */
  readonly charactersMax: number;
}

export const defaultValueLimits: ValueLimits = {
  charactersMax: 2 * 1024 * 1024,
};

/**
 * The deepest nesting of containers. It is far above what data needs and far below what exhausts
 * the stack: recursion here overflows at several thousand levels.
 */
export const depthMax = 200;

/** The error for a value that is too large. `size` is a lower bound: writing stops at the limit. */
export function tooLarge(size: number, limit: number): HoldfastError {
  return new HoldfastError(
    "VALUE_TOO_LARGE",
    `The value takes at least ${size} characters as text; the limit is ${limit}. ` +
      `Keep large data in a blob or attachment and pass its id, or raise the limit.`,
    { size, limit },
  );
}

export function tooDeep(path: readonly PathStep[]): HoldfastError {
  const place = pathText(path);
  return new HoldfastError(
    "VALUE_TOO_LARGE",
    `The value nests deeper than ${depthMax} levels at ${place}. Flatten it, for example into a list with ids.`,
    { path: place, limit: depthMax },
  );
}
