import { checkedSchema, isFields } from "../trigger/payload-schema.ts";
import type { PayloadSchema } from "../trigger/payload-schema.ts";
import { isPlainJson } from "../values/plain-json.ts";
import { processInvalid } from "./errors.ts";
import type { ProcessEnd } from "./output.ts";
import { checkedSelector } from "../trigger/selector.ts";
import type { PayloadSelector } from "../trigger/selector.ts";
import { pathText } from "../values/value-path.ts";
import type { PathStep } from "../values/value-path.ts";

/** A kind of event that a process may have, and what one of them brings about. */
export interface ProcessEventType {
  readonly name: string;
  /** What payloads must look like; defaults to anything. */
  readonly schema?: PayloadSchema;
  readonly terminal?: TerminalSpec;
  readonly wake?: WakeSpec;
}

/** The event ends the process. */
interface TerminalSpec {
  /** `abandoned` is only for the registry. */
  readonly state: ProcessEnd;
  /** What those get who wait for the end. May be left out for `completed`, where it is the payload. */
  readonly output?: PayloadSelector;
}

/** The event wakes the session that the process was registered for. */
interface WakeSpec {
  /** Only if this selects something true. */
  readonly when?: PayloadSelector;
  /** What the session is told. */
  readonly input: PayloadSelector;
  /** Joins a wake of the same key that is still queued. Unless told, no two wakes are the same. */
  readonly dedupe?: PayloadSelector;
}

/** What the registry itself writes. Nobody declares these; `completed` to `abandoned` may be declared to wake. */
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

/** What may be appended from outside though nobody declared it. */
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

/** The declaration of a type, the core ones included; undefined when there is none, or it is for the registry alone. */
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

const typesMax = 256;
const nameCharactersMax = 128;

/**
 * Event types as a caller declared them.
 *
 * @throws HoldfastError `PROCESS_INVALID`, naming the path
 */
export function checkedEventTypes(given: unknown): readonly ProcessEventType[] {
  const root: readonly PathStep[] = ["eventTypes"];
  if (!Array.isArray(given) || given.length > typesMax)
    throw processInvalid(pathText(root), `is no list of at most ${typesMax} declarations.`);
  const seen = new Set<string>();
  const types = given.map((type: unknown, index) => {
    const checked = checkedType(type, [...root, index]);
    if (seen.has(checked.name))
      throw processInvalid(pathText([...root, index, "name"]), "is declared twice.");
    seen.add(checked.name);
    return checked;
  });
  // They are stored as JSON, so that they are what they were when they are read.
  if (!isPlainJson(types, charactersMax))
    throw processInvalid(pathText(root), "holds something that JSON cannot, or too much.");
  // A copy, so that the caller may change what it gave.
  return JSON.parse(JSON.stringify(types)) as ProcessEventType[];
}

const charactersMax = 1_000_000;

function checkedType(given: unknown, path: readonly PathStep[]): ProcessEventType {
  const at = (...steps: readonly PathStep[]): string => pathText([...path, ...steps]);
  if (!isFields(given)) throw processInvalid(at(), "is no declaration.");
  const { name, schema, terminal, wake } = given;
  if (!isName(name))
    throw processInvalid(at("name"), `is no text of 1 to ${nameCharactersMax} characters.`);
  if (isCoreType(name) && !endOfType.has(name))
    throw processInvalid(at("name"), `begins with "${corePrefix}", which belongs to the registry.`);
  if (isCoreType(name) && (schema !== undefined || terminal !== undefined))
    throw processInvalid(
      at("name"),
      "is a type of the registry, which can only be declared to wake.",
    );
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

function isKey(value: unknown): boolean {
  return (
    typeof value === "string" &&
    value.length > 0 &&
    value.length <= keyCharactersMax &&
    !value.includes("\0") &&
    value.isWellFormed()
  );
}

function checkedTerminal(given: unknown, path: readonly PathStep[]): TerminalSpec {
  const at = pathText(path);
  if (!isFields(given) || !declarableEnds.includes(given["state"] as string))
    throw processInvalid(at, `has a state that is none of ${declarableEnds.join(", ")}.`);
  const state = given["state"] as TerminalSpec["state"];
  const { output } = given;
  if (output === undefined && state !== "completed")
    throw processInvalid(
      at,
      `ends a process as ${state} and has no output: say what those get who wait for its end.`,
    );
  return {
    state,
    ...(output !== undefined && {
      output: checkedSelector(output, [...path, "output"]),
    }),
  };
}

function checkedWake(given: unknown, path: readonly PathStep[]): WakeSpec {
  if (!isFields(given)) throw processInvalid(pathText(path), "is no wake.");
  const { when, input, dedupe } = given;
  if (isFields(dedupe) && dedupe["kind"] === "constant" && !isKey(dedupe["value"]))
    throw processInvalid(
      pathText([...path, "dedupe"]),
      `is no text of 1 to ${keyCharactersMax} characters.`,
    );
  return {
    ...(when !== undefined && {
      when: checkedSelector(when, [...path, "when"]),
    }),
    input: checkedSelector(input, [...path, "input"]),
    ...(dedupe !== undefined && {
      dedupe: checkedSelector(dedupe, [...path, "dedupe"]),
    }),
  };
}
