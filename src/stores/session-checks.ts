import type { Tx } from "../sql/operation.ts";
import { sessionsOfKeys, type SessionMention } from "./session-row.ts";
import { distinct, type CheckTools, type JudgeRow } from "./table-check.ts";

/** What checks of rows ask that belong to a session, whichever store they are of. */

export interface OwnedRow {
  readonly session: number;
}

/**
 * Rows of a session, which must be there. One that is deleted or being imported
 * loses or gets its rows in slices, so of those nothing else is asked.
 */
export function* inSessions<R extends OwnedRow>(
  found: readonly R[],
  judge: (row: R, session: SessionMention, tools: CheckTools) => string | undefined = () =>
    undefined,
): Tx<JudgeRow<R>> {
  const sessions = yield* sessionsOfKeys(distinct(found, (row) => row.session));
  return (row, tools) => {
    const session = sessions.get(row.session);
    if (session === undefined) return "Its session is missing.";
    return session.isLiving ? judge(row, session, tools) : undefined;
  };
}

/** The same for rows of scopes, of which some belong to no session. */
export function* inScopes<R extends OwnedRow>(found: readonly R[]): Tx<JudgeRow<R>> {
  const owned = yield* inSessions(found.filter((row) => row.session !== 0));
  return (row, tools) => (row.session === 0 ? undefined : owned(row, tools));
}

/** The sessions of some rows that are not deleted; 0, which stands for none, is among them. */
export function* livingScopes(
  found: readonly { readonly session: number | null }[],
): Tx<ReadonlySet<number>> {
  const sessions = yield* sessionsOfKeys(distinct(found, (row) => row.session));
  const living = [...sessions.values()].filter(({ isLiving }) => isLiving);
  return new Set([0, ...living.map(({ key }) => key)]);
}
