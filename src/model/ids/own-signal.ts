import { HoldfastError } from "../errors.ts";
import { parseFunctionName, type FunctionName } from "./function-name.ts";

/**
 * The beginning of the names of Holdfast's own signals. They are no messages of users: they are
 * neither counted as unread nor shown.
 */
const own = "holdfast/";

/** The signals that Holdfast sends: the request to a turn to stop. */
export type OwnSignal = "holdfast/stop";

export function isOwnSignal(name: string): boolean {
  return name.startsWith(own);
}

/** Returns the name of a signal that users send. @throws HoldfastError `NAME_INVALID` */
export function parseSignalName(text: string): FunctionName {
  const name = parseFunctionName(text);
  if (!isOwnSignal(name)) return name;
  throw new HoldfastError(
    "NAME_INVALID",
    `Names of signals that begin with "${own}" are Holdfast's own. Choose another name.`,
    { name },
  );
}
