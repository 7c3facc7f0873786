import type { Branded } from "./brand.ts";
import { malformedId } from "./malformed-id.ts";
import { isUlid } from "./ulid.ts";

/** The id of a worker instance: a process and the functions it serves. */
export type ExecutorId = Branded<"ExecutorId">;
/** The id of one round of locking by an executor, shared by all executions locked in it. */
export type RunId = Branded<"RunId">;
/** The id of one rolled-out version of the user's code. */
export type DeploymentId = Branded<"DeploymentId">;

/** The id of a process that has a database open. */
export type OwnerId = Branded<"OwnerId">;

/** @throws HoldfastError `ID_MALFORMED`, `details.reason` "prefix" or "ulid". */
export function parseOwnerId(text: string): OwnerId {
  return parsePrefixed(text, "Own", "an owner id") as OwnerId;
}

/** @throws HoldfastError `ID_MALFORMED`, `details.reason` "prefix" or "ulid". */
export function parseExecutorId(text: string): ExecutorId {
  return parsePrefixed(text, "Exr", "an executor id") as ExecutorId;
}

/** @throws HoldfastError `ID_MALFORMED`, `details.reason` "prefix" or "ulid". */
export function parseRunId(text: string): RunId {
  return parsePrefixed(text, "Run", "a run id") as RunId;
}

/** @throws HoldfastError `ID_MALFORMED`, `details.reason` "prefix" or "ulid". */
export function parseDeploymentId(text: string): DeploymentId {
  return parsePrefixed(text, "Dep", "a deployment id") as DeploymentId;
}

function parsePrefixed(text: string, prefix: string, what: string): string {
  const expected = `${what} such as "${prefix}_01ARZ3NDEKTSV4RRFFQ69G5FAV"`;
  if (typeof text !== "string" || !text.startsWith(`${prefix}_`)) {
    throw malformedId(expected, text, "prefix");
  }
  if (!isUlid(text.slice(prefix.length + 1))) {
    throw malformedId(expected, text, "ulid");
  }
  return text;
}
