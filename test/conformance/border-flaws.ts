import { sessionName } from "./border-calls.ts";
import type { Call, Kind } from "./border-calls.ts";

export const secret = "my secret payload text";
export const bare: unknown = Object.create(null);
const never = [null, 5, true, Symbol("s"), () => secret];
const notText = [...never, undefined, [], {}, bare];
const badText = [...notText, "", "a\0b", "\ud800"];

/** What no position of a kind takes. */
export const wrong: Readonly<Record<Kind, readonly unknown[]>> = {
  session: [...badText, { id: 5 }, { id: sessionName, generation: secret }],
  handle: [...badText, { id: sessionName }, { id: sessionName, generation: 0 }],
  id: [...badText, "x".repeat(257)],
  text: badText,
  hash: [...badText, "abc", "G".repeat(64)],
  bytes: [...notText, secret, new Uint16Array(1)],
  object: [...never, undefined, secret, []],
  options: [...never, "text"],
  lease: [...badText, secret, { fence: 1 }],
  list: [...never, undefined, secret, {}, [null], [5], [{}], [[]]],
  instant: [...notText.filter((value) => value !== 5), -1, 1.5, Number.NaN, secret],
  path: [...notText, "", "a\0b"],
  function: [...never.slice(0, -1), undefined, secret, [], {}],
  count: [...notText.filter((value) => value !== 5), -2, 1.5, secret],
  duration: [...notText.filter((value) => value !== 5), -1, "soon"],
  owner: badText.filter((value) => value !== null),
  reason: badText.filter((value) => value !== undefined),
  any: [],
};

/** What no option takes, whatever it is. A number may be a duration, and a text an id. */
export const wrongOption = [null, Symbol("s"), [], -1, "\0", bare];

/** In which a bare object is right. */
export const takesObject = ["meta", "sqlite", "descriptor"];

/** How a call that must be refused was answered instead; undefined when it was refused. */
export async function flawOf(
  call: Call,
  position: number,
  value: unknown,
): Promise<string | undefined> {
  const given = call.args.with(position, value) as never[];
  const outcome = await (async () => call.run(...given))().then(
    () => new Error("accepted"),
    (error: unknown) => error as Error & { readonly code?: string },
  );
  const isRefused =
    outcome.name === "HoldfastError" &&
    "code" in outcome &&
    /(INVALID|MALFORMED|MISMATCH|LOST)$/.test(outcome.code ?? "") &&
    !outcome.message.includes(secret);
  if (isRefused) return undefined;
  return `${call.name}, position ${position}, ${described(value)}: ${String(outcome)}`;
}

function described(value: unknown): string {
  if (typeof value !== "object" || value === null)
    return typeof value === "string" ? JSON.stringify(value) : typeof value;
  return `{ ${Object.keys(value).join(", ")} } of ${Object.values(value)
    .map((part) => (part === null ? "null" : typeof part))
    .join(", ")}`;
}
