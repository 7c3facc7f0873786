import type { Branded } from "./brand.ts";
import { HoldfastError } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";
import { spokenKind } from "../values/spoken-kind.ts";

/** The registered name of a workflow or an activity, such as `orders/fulfil`. */
export type FunctionName = Branded<"FunctionName">;

const pattern = /^[A-Za-z0-9_./-]{1,128}$/;

/** @throws HoldfastError `NAME_INVALID`. */
export function parseFunctionName(text: string): FunctionName {
  // The pattern would accept undefined as the text "undefined".
  const isText = typeof text === "string";
  if (isText && pattern.test(text)) return text as FunctionName;
  throw new HoldfastError(
    "NAME_INVALID",
    `The name of a function or a signal must be 1 to 128 characters of A-Z, a-z, 0-9, "_", ".", "/" and "-", such as "orders/fulfil"; got ${isText ? excerpt(text) : spokenKind(text)}.`,
    isText ? { name: text.slice(0, 80) } : {},
  );
}
