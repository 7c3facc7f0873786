import { HoldfastError } from "../errors.ts";
import { pathText, type PathStep } from "./value-path.ts";

export interface ValueLimits {
  /**
   * The longest text a value may become, in characters (UTF-16 units, which
   * cost nothing to count; on disk each takes one to three bytes).
   */
  readonly charactersMax: number;
}

export const defaultValueLimits: ValueLimits = {
  charactersMax: 2 * 1024 * 1024,
};

/**
 * How deeply containers may nest. Far above what data needs, far below what
 * exhausts the stack (recursion here overflows at several thousand levels).
 */
export const depthMax = 200;

/** `size` is a lower bound: writing stops where the limit is crossed. */
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
