import type { ErrorCode } from "../../../src/model/errors.ts";
import type { StepName } from "./steps.ts";

const lifecycle = ["EXECUTION_PAUSED", "EXECUTION_CANCELLING", "EXECUTION_PARKED"] as const;
const lock = [
  "EXECUTION_FINISHED",
  "LOCK_EXPIRY_INVALID",
  "LOCK_NOT_DUE",
  "LOCK_HELD",
  "LOCK_BLOCKED",
  "LOCK_INCOMPATIBLE",
  ...lifecycle,
] as const;
const place = [
  "EXECUTION_NOT_FOUND",
  "EXECUTION_FINISHED",
  "VERSION_CONFLICT",
  "LOCK_LOST",
] as const;

/** With which errors each call may answer: those its documentation names. */
export const codesOf: Readonly<Record<StepName, readonly ErrorCode[]>> = {
  clock: [],
  create: [
    "EXECUTION_EXISTS",
    "EXECUTION_BEING_REMOVED",
    "EXECUTION_NOT_FOUND",
    "EXECUTION_FINISHED",
    "EXECUTION_CANCELLING",
  ],
  createLocked: ["EXECUTION_EXISTS", "EXECUTION_BEING_REMOVED", "EXECUTION_NOT_FOUND", ...lock],
  append: [
    ...place,
    ...lock,
    "EVENTS_INVALID",
    "DELAY_EXISTS",
    "EXECUTION_EXISTS",
    "EXECUTION_NOT_PAUSED",
    "EXECUTION_NOT_PARKED",
    "EXECUTION_RUNNING",
    "UNLOCK_REFUSED",
    "MESSAGE_UNREAD",
  ],
  finish: place,
  lockPending: ["LOCK_EXPIRY_INVALID"],
  lock: ["EXECUTION_NOT_FOUND", "VERSION_CONFLICT", ...lock],
  extend: [...place, ...lock],
  renew: ["LOCK_EXPIRY_INVALID"],
  unlock: [...place, ...lifecycle, "UNLOCK_REFUSED"],
  cancelDelay: ["EXECUTION_NOT_FOUND", "DELAY_NOT_FOUND"],
  expireDelay: ["EXECUTION_NOT_FOUND", "DELAY_NOT_FOUND"],
  expireDelays: [],
  pauseDelay: ["DELAY_NOT_FOUND"],
  unpauseDelay: ["DELAY_NOT_FOUND"],
  signal: ["EXECUTION_NOT_FOUND", "EXECUTION_FINISHED", "SIGNAL_CONFLICT"],
  receive: [...place, ...lifecycle, "EVENTS_INVALID"],
  pause: ["EXECUTION_NOT_FOUND", "EXECUTION_FINISHED", "EXECUTION_RUNNING", ...lifecycle],
  unpause: ["EXECUTION_NOT_FOUND", "EXECUTION_FINISHED", "EXECUTION_NOT_PAUSED", ...lifecycle],
  unpark: ["EXECUTION_NOT_FOUND", "EXECUTION_FINISHED", "EXECUTION_NOT_PARKED", ...lifecycle],
  cancel: ["EXECUTION_NOT_FOUND"],
  cancelByForce: ["EXECUTION_NOT_FOUND"],
  cancelActivity: ["EXECUTION_NOT_FOUND", "EVENTS_INVALID"],
  resolve: ["EXECUTION_NOT_FOUND", "NOT_EXTERNAL", "RESOLUTION_CONFLICT"],
  setProgress: ["EXECUTION_NOT_FOUND", "LOCK_LOST"],
  expireLock: ["EXECUTION_NOT_FOUND"],
  expireDeadline: ["EXECUTION_NOT_FOUND"],
  releaseDead: ["EXECUTION_NOT_FOUND"],
  pruneHistory: ["EXECUTION_NOT_FOUND"],
  fork: ["EXECUTION_NOT_FOUND", "FORK_POINT_INVALID", "EXECUTION_EXISTS", "EVENTS_INVALID"],
  retry: [
    "EXECUTION_NOT_FOUND",
    "FORK_POINT_INVALID",
    "NOT_FAILED",
    "EXECUTION_EXISTS",
    "EVENTS_INVALID",
  ],
};
