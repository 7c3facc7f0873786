import { HoldfastError } from "../errors.ts";
import { pathText, type PathStep } from "./value-path.ts";

/** The error for a value that cannot be stored: the value found, its place, and the remedy. */
export function notSerializable(
  found: string,
  advice: string,
  path: readonly PathStep[],
  cause?: unknown,
): HoldfastError {
  const place = pathText(path);
  return new HoldfastError(
    "NOT_SERIALIZABLE",
    `Cannot store ${found} at ${place}. ${advice}`,
    { path: place, found },
    cause === undefined ? undefined : { cause },
  );
}

/** The error for a value of an unsupported type. */
export function unsupportedType(value: unknown, path: readonly PathStep[]): HoldfastError {
  const { found, advice } = describe(value);
  return notSerializable(found, advice, path);
}

interface Description {
  readonly found: string;
  readonly advice: string;
}

function describe(value: unknown): Description {
  switch (typeof value) {
    case "number":
      return {
        found: String(value),
        advice: "Use null, or a string of your own.",
      };
    case "function":
      return {
        found: "a function",
        advice: "Leave it out, or store what it returns.",
      };
    case "symbol":
      return { found: "a symbol", advice: "Use a string instead." };
    default:
      return describeInstance(value as object);
  }
}

function describeInstance(value: object): Description {
  if (typeof (value as { then?: unknown }).then === "function") {
    return { found: "a promise", advice: "Await it first." };
  }
  const { constructor } = value as { constructor?: unknown };
  const name = typeof constructor === "function" ? constructor.name : "";
  return {
    found: `an instance of ${name === "" ? "an unnamed class" : name}`,
    advice:
      "Copy what matters into a plain object. Besides JSON, these can be stored: " +
      "Date, bigint, Uint8Array, Map, Set, undefined and Error.",
  };
}
