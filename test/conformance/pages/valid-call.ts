/** A call that is right, with all that it must be given. Properties that it may be given besides are found by the suite. */
export interface ValidCall {
  readonly args: readonly unknown[];
  /** Places, such as `1.payload`, that take any value, and objects of any properties. */
  readonly free?: readonly string[];
  /** It may wait for what never comes: it is looked at a moment later. */
  readonly waits?: true;
  /** Of several steps, each of which builds on what the one before has written. */
  readonly isKept?: true;
  /** It may have written something when it is refused, such as an intent. */
  readonly mayWrite?: true;
}

export type Calls = Readonly<Record<string, ValidCall>>;

/** By the names of methods; a list is short for its arguments alone. */
export function calls(table: Readonly<Record<string, readonly unknown[] | ValidCall>>): Calls {
  return Object.fromEntries(
    Object.entries(table).map(([name, given]) => [name, "args" in given ? given : { args: given }]),
  );
}

/** So that no wait lasts. */
function aborted(): { readonly signal: AbortSignal } {
  return { signal: AbortSignal.abort() };
}

export function waits(...args: readonly unknown[]): ValidCall {
  return { args: [...args, aborted()], waits: true };
}

/** Who asks for a lease. */
export const claimant = { owner: "bob", incarnation: "1" };

/** What something came to. */
export const result = { kind: "completed", value: 1 };
