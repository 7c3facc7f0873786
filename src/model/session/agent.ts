import { HoldfastError } from "../errors.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { FunctionName } from "../ids/function-name.ts";
import { malformedId } from "../ids/malformed-id.ts";
import { hashInput } from "../values/canonical.ts";
import type { Encoded } from "../values/encoded.ts";
import { excerpt } from "../values/excerpt.ts";
import { spokenKind } from "../values/spoken-kind.ts";
import { encodeValue } from "../values/values.ts";

/**
 * The turns of a session that an agent takes. Each is a run, of a function and with an id that
 * follow from the session. Both have reserved prefixes, so that no other run takes their place.
 */

/** The beginning of the names of functions that take turns. */
const functionPrefix = "agent/";
/** The beginning of the ids of turns. */
const turnPrefix = "turn:";
const digestCharacters = 26;
/** Leaves room for the prefix in the name of a function. */
const agentName = /^[A-Za-z0-9_/-]{1,122}$/;

/** The number of turns that may end on a batch without consuming it. Then it is set aside. */
export const failedTurnsMax = 3;

/** The name of an agent: its function is `agent/<name>`. @throws HoldfastError `NAME_INVALID` */
export function parseAgent(name: string): string {
  if (typeof name === "string" && agentName.test(name)) return name;
  throw new HoldfastError(
    "NAME_INVALID",
    `The name of an agent is 1 to 122 of A-Z, a-z, 0-9, "_", "/" and "-", such as "support"; got ${typeof name === "string" ? excerpt(name) : spokenKind(name)}.`,
  );
}

/** The function that takes the turns of an agent. */
export function agentFunction(agent: string): FunctionName {
  return `${functionPrefix}${agent}` as FunctionName;
}

/** The number of a turn in its session, as the run of the turn gets it. */
export interface TurnInput {
  readonly turn: number;
  readonly session: string;
  readonly generation: number;
}

/** The id of the run of a turn. */
export function turnId(
  { session, generation, turn }: TurnInput,
  sha256Hex: (text: string) => string,
): ExecutionId {
  const digest = sha256Hex(`holdfast:turn:1:${JSON.stringify([session, generation, turn])}`);
  return `${turnPrefix}${digest.slice(0, digestCharacters)}` as ExecutionId;
}

/**
 * The input of a turn in its stored form. It names the session as its row does, in the clear: a
 * turn also starts where there is no codec (`isClear` of `value-codec.ts`).
 */
export function turnInput(
  { turn, session, generation }: TurnInput,
  sha256Hex: (text: string) => string,
): { readonly input: Encoded; readonly inputHash: string } {
  const input = { turn, session, generation };
  return {
    input: encodeValue(input) as Encoded,
    inputHash: sha256Hex(hashInput("execution", 1, input)),
  };
}

/** Refuses ids of turns to everyone but the queue of the session. @throws HoldfastError `ID_MALFORMED` */
export function refuseTurnId(id: string): void {
  if (id.startsWith(turnPrefix))
    throw malformedId(
      `an id that does not start with "${turnPrefix}", which ids of turns do: they start with work in the queue of their session`,
      id,
      "prefix",
    );
}

/** Does the same for their ids and functions. @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID` */
export function refuseTurn(id: string, name: string): void {
  refuseTurnId(id);
  if (!name.startsWith(functionPrefix)) return;
  throw new HoldfastError(
    "NAME_INVALID",
    `Names of functions that start with "${functionPrefix}" belong to agents, whose turns start with work in the queue of a session; got ${excerpt(name)}. Choose another name.`,
    { name: name.slice(0, 80) },
  );
}
