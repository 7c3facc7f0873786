import { checkedSchema, isFields } from "../trigger/payload-schema.ts";
import type { PayloadSchema } from "../trigger/payload-schema.ts";
import { isPlainJson } from "../values/plain-json.ts";
import { processInvalid } from "./errors.ts";
import type { ProcessEnd } from "./output.ts";
import { checkedSelector } from "../trigger/selector.ts";
import type { PayloadSelector } from "../trigger/selector.ts";
import { pathText } from "../values/value-path.ts";
import type { PathStep } from "../values/value-path.ts";

/** A kind of event that a process may have, and the effect of such an event. */
export interface ProcessEventType {
  readonly name: string;
  /** The schema of payloads; defaults to anything. */
  readonly schema?: PayloadSchema;
  readonly terminal?: TerminalSpec;
  readonly wake?: WakeSpec;
}

/** The event ends the process. */
interface TerminalSpec {
  /** `abandoned` is only for the registry. */
  readonly state: ProcessEnd;
  /**
   * The output for callers that wait for the end. Optional for `completed`, where it defaults to
   * the payload.
   */
  readonly output?: PayloadSelector;
}

/** The event wakes the session that the process was registered for. */
interface WakeSpec {
  /** A condition: the event wakes the session only if this selects a truthy value. */
  readonly when?: PayloadSelector;
  /** The input that the session receives. */
  readonly input: PayloadSelector;
  /**
   * A key for merging: the wake joins a queued wake with the same key. By default no two wakes are
   * merged.
   */
  readonly dedupe?: PayloadSelector;
  /**
   * A key for claiming together: one turn takes this wake with adjacent work of the same key. By
   * default the wake is claimed by itself.
   */
  readonly merge?: PayloadSelector;
}

/**
 * The event types that the registry itself writes. A process cannot declare them, except
 * `completed` to `abandoned`, which it may declare to wake.
 */
export const coreTypes = {
  registered: "process.registered",
  started: "process.started",
  cancelRequested: "process.cancel_requested",
  waiting: "process.waiting",
  resumed: "process.resumed",
  externalRef: "process.external_ref",
  wakeTargetCleared: "process.wake_target_cleared",
  completed: "process.completed",
  failed: "process.failed",
  cancelled: "process.cancelled",
  abandoned: "process.abandoned",
  pruned: "process.pruned",
} as const;

const corePrefix = "process.";

/** The core types that end a process. */
export const endTypes: Readonly<Record<ProcessEnd, string>> = {
  completed: coreTypes.completed,
  failed: coreTypes.failed,
  cancelled: coreTypes.cancelled,
  abandoned: coreTypes.abandoned,
};

const declarableEnds: readonly string[] = [
  "completed",
  "failed",
  "cancelled",
] satisfies ProcessEnd[];

const endOfType: ReadonlyMap<string, ProcessEnd> = new Map(
  (Object.keys(endTypes) as ProcessEnd[]).map((end) => [endTypes[end], end]),
);

/** The core types that a caller may append without a declaration. */
const appendable: ReadonlySet<string> = new Set([
  coreTypes.cancelRequested,
  coreTypes.completed,
  coreTypes.failed,
  coreTypes.cancelled,
]);

export function isCoreType(type: string): boolean {
  return type.startsWith(corePrefix);
}

const outputSelector: PayloadSelector = { kind: "pointer", pointer: "/output" };

/**
 * Returns the declaration of a type, including core types; undefined when it is missing or only for
 * the registry.
 */
export function declaredType(
  declared: readonly ProcessEventType[],
  name: string,
  by: "caller" | "registry" = "caller",
): ProcessEventType | undefined {
  const own = declared.find((type) => type.name === name);
  if (!isCoreType(name)) return own;
  if (by === "caller" && !appendable.has(name)) return undefined;
  const state = endOfType.get(name);
  return {
    name,
    ...(state && { terminal: { state, output: outputSelector } }),
    ...(own?.wake && { wake: own.wake }),
  };
}

/** The most event types that a process may declare. */
export const eventTypesMax = 256;
const nameCharactersMax = 128;

/**
 * Checks the event types that a caller declares.
 *
 * @throws HoldfastError `PROCESS_INVALID`, naming the path
 */
export function checkedEventTypes(given: unknown): readonly ProcessEventType[] {
  const root: readonly PathStep[] = ["eventTypes"];
  if (!Array.isArray(given) || given.length > eventTypesMax)
    throw processInvalid(
      pathText(root),
      `must be an array of at most ${eventTypesMax} declarations.`,
    );
  const seen = new Set<string>();
  const types = given.map((type: unknown, index) => {
    const checked = checkedType(type, [...root, index]);
    if (seen.has(checked.name))
      throw processInvalid(pathText([...root, index, "name"]), "is declared twice.");
    seen.add(checked.name);
    return checked;
  });
  // They are stored as JSON, so they must survive it unchanged.
  if (!isPlainJson(types, charactersMax))
    throw processInvalid(
      pathText(root),
      "contains a value that JSON cannot hold, or is too large.",
    );
  // A copy, so that the caller may change its own object.
  return JSON.parse(JSON.stringify(types)) as ProcessEventType[];
}

const charactersMax = 1_000_000;

function checkedType(given: unknown, path: readonly PathStep[]): ProcessEventType {
  const at = (...steps: readonly PathStep[]): string => pathText([...path, ...steps]);
  if (!isFields(given)) throw processInvalid(at(), "is not a declaration.");
  const { name, schema, terminal, wake } = given;
  if (!isName(name))
    throw processInvalid(at("name"), `must be a string of 1 to ${nameCharactersMax} characters.`);
  if (isCoreType(name) && !endOfType.has(name))
    throw processInvalid(
      at("name"),
      `starts with "${corePrefix}", which is reserved for the registry.`,
    );
  if (isCoreType(name) && (schema !== undefined || terminal !== undefined))
    throw processInvalid(at("name"), "is a type of the registry, so it can only declare a wake.");
  return {
    name,
    ...(schema !== undefined && {
      schema: checkedSchema(schema, [...path, "schema"]),
    }),
    ...(terminal !== undefined && {
      terminal: checkedTerminal(terminal, [...path, "terminal"]),
    }),
    ...(wake !== undefined && { wake: checkedWake(wake, [...path, "wake"]) }),
  };
}

function isName(name: unknown): name is string {
  return (
    typeof name === "string" &&
    name.trim().length > 0 &&
    name.length <= nameCharactersMax &&
    !name.includes("\0") &&
    name.isWellFormed()
  );
}

const keyCharactersMax = 512;
/** The limit that queues set. */
const mergeKeyCharactersMax = 128;

function isKey(value: unknown, longest: number): boolean {
  return (
    typeof value === "string" &&
    value.length > 0 &&
    value.length <= longest &&
    !value.includes("\0") &&
    value.isWellFormed()
  );
}

function checkedTerminal(given: unknown, path: readonly PathStep[]): TerminalSpec {
  const at = pathText(path);
  if (!isFields(given) || !declarableEnds.includes(given["state"] as string))
    throw processInvalid(at, `must have one of these states: ${declarableEnds.join(", ")}.`);
  const state = given["state"] as TerminalSpec["state"];
  const { output } = given;
  if (output === undefined && state !== "completed")
    throw processInvalid(
      at,
      `ends a process as ${state} without an output: select the output for callers that wait for its end.`,
    );
  return {
    state,
    ...(output !== undefined && {
      output: checkedSelector(output, [...path, "output"]),
    }),
  };
}

function checkedWake(given: unknown, path: readonly PathStep[]): WakeSpec {
  if (!isFields(given)) throw processInvalid(pathText(path), "is not a wake.");
  const { when, input, dedupe, merge } = given;
  for (const [name, key, longest] of [
    ["dedupe", dedupe, keyCharactersMax],
    ["merge", merge, mergeKeyCharactersMax],
  ] as const)
    if (isFields(key) && key["kind"] === "constant" && !isKey(key["value"], longest))
      throw processInvalid(
        pathText([...path, name]),
        `must be a string of 1 to ${longest} characters.`,
      );
  return {
    ...(when !== undefined && {
      when: checkedSelector(when, [...path, "when"]),
    }),
    input: checkedSelector(input, [...path, "input"]),
    ...(dedupe !== undefined && {
      dedupe: checkedSelector(dedupe, [...path, "dedupe"]),
    }),
    ...(merge !== undefined && {
      merge: checkedSelector(merge, [...path, "merge"]),
    }),
  };
}
