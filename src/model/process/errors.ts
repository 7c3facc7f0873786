import { HoldfastError } from "../errors.ts";
import type { ErrorDetails } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";

/** The errors of the process registry, collected here so that each has one wording. */

export function processNotFound(id: string): HoldfastError {
  return new HoldfastError(
    "PROCESS_NOT_FOUND",
    `Process ${excerpt(id)} does not exist. Register it first, or check the id.`,
    { id },
  );
}

export function processConflict(id: string, part: string): HoldfastError {
  return new HoldfastError(
    "PROCESS_CONFLICT",
    `Process ${excerpt(id)} is already registered with another ${part}; that registration stays and nothing was changed. ` +
      "Repeat a registration with exactly the same content, or use another id.",
    { id, part },
  );
}

export function processInvalid(
  path: string,
  why: string,
  details: ErrorDetails = {},
): HoldfastError {
  return new HoldfastError(
    "PROCESS_INVALID",
    `This process cannot be registered: ${path} ${why} Nothing was changed.`,
    { path, ...details },
  );
}

export function processTerminal(id: string, status: string): HoldfastError {
  return new HoldfastError(
    "PROCESS_TERMINAL",
    `Process ${excerpt(id)} has already ended (${status}), and that end stays. Nothing was changed. Read its output.`,
    { id, status },
  );
}

export function processPruned(id: string): HoldfastError {
  return new HoldfastError(
    "PROCESS_PRUNED",
    `Process ${excerpt(id)} was pruned: its status is known, but its content is gone. Prune later if you need it longer.`,
    { id },
  );
}

export function processSpawned(id: string, execution: string): HoldfastError {
  return new HoldfastError(
    "PROCESS_SPAWNED",
    `Process ${excerpt(id)} was spawned as run ${excerpt(execution)}, which has not ended; only the end of the run ends the process. Nothing was changed. Cancel the process, which cancels the run.`,
    { id, execution },
  );
}

export function processAttemptsUsed(id: string, attempts: number): HoldfastError {
  return new HoldfastError(
    "PROCESS_ATTEMPTS_USED",
    `Process ${excerpt(id)} was started ${attempts} times, the limit of its registration. Nothing was changed. End it with a known outcome, or release the lease and abandon it.`,
    { id, attempts },
  );
}

export function eventTypeUndeclared(id: string, type: string): HoldfastError {
  return new HoldfastError(
    "EVENT_TYPE_UNDECLARED",
    `Process ${excerpt(id)} has not declared the event type ${excerpt(type)}. Nothing was changed. ` +
      "Declare it when the process is registered, or check the spelling.",
    { id, type },
  );
}

export function eventTypeReserved(type: string): HoldfastError {
  return new HoldfastError(
    "EVENT_TYPE_RESERVED",
    `Events of type ${excerpt(type)} are written by the registry itself. Nothing was changed. Call the method for that event instead.`,
    { type },
  );
}

export function replayKeyRequired(id: string, type: string): HoldfastError {
  return new HoldfastError(
    "REPLAY_KEY_REQUIRED",
    `An event of type ${excerpt(type)} of process ${excerpt(id)} needs a replay key, so that appending it twice has one effect. Nothing was changed.`,
    { id, type },
  );
}

export function replayKeyConflict(id: string, key: string): HoldfastError {
  return new HoldfastError(
    "REPLAY_KEY_CONFLICT",
    `Process ${excerpt(id)} has an event under the replay key ${excerpt(key)} with another type or payload; that event stays. ` +
      "Repeat an append with exactly the same content, or use another key.",
    { id, replayKey: key },
  );
}

export function replayKeyReserved(id: string, key: string): HoldfastError {
  return new HoldfastError(
    "REPLAY_KEY_RESERVED",
    `The replay key ${excerpt(key)} is reserved for the registry's own events of process ${excerpt(id)}. Nothing was changed. ` +
      'Use a key that does not start with "process:" or "signal:".',
    { id, replayKey: key },
  );
}

export function payloadInvalid(
  id: string,
  type: string,
  violation: { readonly path: string; readonly rule: string },
): HoldfastError {
  const { path, rule } = violation;
  return new HoldfastError(
    "EVENT_PAYLOAD_INVALID",
    `The payload of ${excerpt(type)} of process ${excerpt(id)} breaks the declared schema at ${path}: ${rule}. Nothing was changed.`,
    { id, type, path, rule },
  );
}

export function selectorUnmatched(pointer: string): HoldfastError {
  return new HoldfastError(
    "EVENT_SELECTOR_UNMATCHED",
    `The payload has nothing at ${excerpt(pointer)}, where the declaration of its type looks for a value. Nothing was changed. ` +
      "Require the property in the schema of the type, or select another property.",
    { pointer },
  );
}

export function externalRefConflict(id: string): HoldfastError {
  return new HoldfastError(
    "EXTERNAL_REF_CONFLICT",
    `Process ${excerpt(id)} already refers to other outside work; that reference stays. Register another process for the other work.`,
    { id },
  );
}

export function handleNotGranted(process: string, session: string): HoldfastError {
  return new HoldfastError(
    "HANDLE_NOT_GRANTED",
    `Session ${excerpt(session)} has no handle of process ${excerpt(process)}. Nothing was changed. Grant one, or name the session and frame that hold it.`,
    { process, session },
  );
}

export function processLeased(
  id: string,
  holder: { readonly owner: string; readonly expiresAt: number },
): HoldfastError {
  return new HoldfastError(
    "PROCESS_LEASED",
    `Process ${excerpt(id)} is leased by ${excerpt(holder.owner)} until ${holder.expiresAt}; only that holder may end the process or set its wait or its external reference. Nothing was changed. ` +
      "Request its cancellation, or wait until the lease ends.",
    { id, owner: holder.owner, expiresAt: holder.expiresAt },
  );
}
