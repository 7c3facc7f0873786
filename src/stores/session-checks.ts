import type { Tx } from "../sql/operation.ts";
import { sessionsOfKeys, type SessionMention } from "./session-row.ts";
import { distinct, type CheckTools, type JudgeRow } from "./table-check.ts";

/** Shared checks of rows that belong to a session, for all stores. */

export interface OwnedRow {
  readonly session: number;
}

/**
 * Checks rows of a session, which must exist. A session that is deleted or being imported loses or
 * gets its rows in slices, so nothing else is checked there.
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

/** Does the same for rows of scopes, some of which belong to no session. */
export function* inScopes<R extends OwnedRow>(found: readonly R[]): Tx<JudgeRow<R>> {
  const owned = yield* inSessions(found.filter((row) => row.session !== 0));
  return (row, tools) => (row.session === 0 ? undefined : owned(row, tools));
}

/** The sessions of some rows that are not deleted, including 0, which stands for no session. */
export function* livingScopes(
  found: readonly { readonly session: number | null }[],
): Tx<ReadonlySet<number>> {
  const sessions = yield* sessionsOfKeys(distinct(found, (row) => row.session));
  const living = [...sessions.values()].filter(({ isLiving }) => isLiving);
  return new Set([0, ...living.map(({ key }) => key)]);
}
