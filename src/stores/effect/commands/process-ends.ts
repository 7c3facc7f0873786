import { effectScopeInvalid } from "../../../model/effect-errors.ts";
import { isOfTheStore } from "../../../model/errors.ts";
import { parseProcessId } from "../../../model/process-id.ts";
import type { ProcessId } from "../../../model/process-id.ts";
import type { ProcessOutput } from "../../../model/process-output.ts";
import type { Tx } from "../../../sql/operation.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { meantGeneration } from "../../session/session-row.ts";
import { sessions } from "../../session/sessions.ts";
import { nothingRemoved, type RemovalReport } from "../../session/parts.ts";
import { sessionNamed } from "../../session/session-name.ts";
import type { SessionName } from "../../session/session-name.ts";
import { givenWait } from "../../given.ts";
import { commandKey, ownTerms } from "./process-commands.ts";
import type { Commander, ProcessCommandOptions } from "./process-commands.ts";
import { checkedScope } from "../scope.ts";
import type { EffectScope } from "../scope.ts";

/** Waits for the end of a process without a claim, and then records what it ended with. */
export async function awaitProcess(
  commander: Commander,
  scope: EffectScope,
  process: string,
  options: ProcessCommandOptions,
): Promise<ProcessOutput> {
  const { store, processes, environment } = commander;
  const id = parseProcessId(process);
  const key = commandKey(commander, options, "await", id);
  const wait = givenWait(options);
  const known = await store.get(scope, key, wait);
  const isSettled = known !== undefined && known.state.kind !== "inProgress";
  const refusal =
    isSettled || environment.replayOnly === true
      ? undefined
      : await refusalOf(commander, id, wait);
  const readOutput = processes.output.prepare(id);
  return store.transact(
    scope,
    key,
    { kind: "process.await", input: { process: id } },
    function* (): Tx<ProcessOutput> {
      if (refusal !== undefined) throw refusal.error;
      const output = yield* readOutput();
      if (output === undefined) throw new Error("It had ended.");
      return output;
    },
    ownTerms(wait),
  );
}

/** Undefined once the process has ended; else why nobody can wait for that, which is an answer too. */
async function refusalOf(
  commander: Commander,
  id: ProcessId,
  wait: WaitOptions,
): Promise<{ readonly error: unknown } | undefined> {
  try {
    await commander.processes.waitForEnd(id, wait);
    return undefined;
  } catch (error) {
    if (isOfTheStore(error)) throw error;
    return { error };
  }
}

/**
 * Deletes a session, which takes many transactions; each may be repeated. The
 * generation that is meant is recorded before: the id may be used again by the
 * time somebody goes on with it.
 */
export async function deleteSessionOf(
  commander: Commander,
  scope: EffectScope,
  session: SessionName,
  options: ProcessCommandOptions,
): Promise<RemovalReport> {
  const { store, database, environment } = commander;
  const { id, generation } = sessionNamed(session);
  if (checkedScope(scope).session?.id === id)
    throw effectScopeInvalid(
      "scope.session",
      "another session than the one that is deleted, or none",
    );
  const wait = givenWait(options);
  const meant =
    generation ??
    (await store.transact(
      scope,
      commandKey(commander, options, "find-session", id),
      { kind: "process.findSession", input: { session: id } },
      function* (): Tx<number | null> {
        return (yield* meantGeneration(id)) ?? null;
      },
      ownTerms(wait),
    ));
  return store.execute(
    scope,
    commandKey(commander, options, "delete-session", id),
    {
      kind: "process.deleteSession",
      input: { session: id, generation: generation ?? null },
    },
    async ({ signal }) => {
      if (meant === null) return nothingRemoved;
      const one = { id, generation: meant };
      const { clock } = environment;
      return storable(
        await sessions(database, clock && { clock }).delete(one, { signal }),
      );
    },
    wait,
  );
}

/** Ids have up to 256 characters, each of which takes up to six as text: two lists of them stay below the limit of a value. */
const idsMax = 500;

/** What is recorded of a report: of its ids as many as fit in any case. */
function storable(report: RemovalReport): RemovalReport {
  const { orphaned, preserved, hasMore } = report.processes;
  const isCut = orphaned.length > idsMax || preserved.length > idsMax;
  return {
    ...report,
    processes: {
      ...report.processes,
      orphaned: orphaned.slice(0, idsMax),
      preserved: preserved.slice(0, idsMax),
      hasMore: hasMore || isCut,
    },
  };
}
