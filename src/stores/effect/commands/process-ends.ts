import { effectScopeInvalid } from "../../../model/effect/errors.ts";
import { isOfTheStore } from "../../../model/errors.ts";
import { parseProcessId, type ProcessId } from "../../../model/ids/process-id.ts";
import type { ProcessOutput } from "../../../model/process/output.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import type { Tx } from "../../../sql/operation.ts";
import { optionsAndWait } from "../../method.ts";
import { nothingRemoved, type RemovalReport } from "../../session/parts.ts";
import { sessionNamed, type SessionName } from "../../session-name.ts";
import { meantGeneration } from "../../session-row.ts";
import { checkedScope, type EffectScope } from "../scope.ts";
import {
  commandKey,
  ownBody,
  type CommandContext,
  type ProcessCommandOptions,
} from "./process-commands.ts";

/** Waits for the end of a process without a claim, and then records its output. */
export async function awaitProcess(
  context: CommandContext,
  scope: EffectScope,
  process: string,
  given?: ProcessCommandOptions,
): Promise<ProcessOutput> {
  const { options, wait } = optionsAndWait(given, ["call"]);
  const { effects, processes } = context;
  const id = parseProcessId(process);
  const key = commandKey(context, options, "await", id);
  const known = await effects.get(scope, key, wait);
  const isSettled = known !== undefined && known.state.kind !== "inProgress";
  const refusal = isSettled || context.isStrict ? undefined : await refusalOf(context, id, wait);
  const readOutput = processes.output.prepare(id);
  return effects.transact(
    scope,
    key,
    { kind: "process.await", input: { process: id } },
    function* (): Tx<ProcessOutput> {
      if (refusal !== undefined) throw refusal.error;
      const output = yield* readOutput();
      if (output === undefined) throw new Error("It had ended.");
      return output;
    },
    ownBody(wait),
  );
}

/**
 * Undefined once the process has ended; otherwise the reason why a wait for it is refused, which is
 * an answer too.
 */
async function refusalOf(
  { processes }: CommandContext,
  id: ProcessId,
  wait: WaitOptions,
): Promise<{ readonly error: unknown } | undefined> {
  try {
    await processes.waitForEnd(id, wait);
    return undefined;
  } catch (error) {
    if (isOfTheStore(error)) throw error;
    return { error };
  }
}

/**
 * Deletes a session in many transactions, each of which may be repeated. The generation to delete
 * is recorded first, since the id may be in use again by the time a later run resumes.
 */
export async function deleteSessionOf(
  context: CommandContext,
  scope: EffectScope,
  session: SessionName,
  given?: ProcessCommandOptions,
): Promise<RemovalReport> {
  const { options, wait } = optionsAndWait(given, ["call"]);
  const { effects, sessions } = context;
  const { id, generation } = sessionNamed(session);
  if (checkedScope(scope).session?.id === id)
    throw effectScopeInvalid(
      "scope.session",
      "another session than the one that is deleted, or none",
    );
  const meant =
    generation ??
    (await effects.transact(
      scope,
      commandKey(context, options, "find-session", id),
      { kind: "process.findSession", input: { session: id } },
      function* (): Tx<number | null> {
        return (yield* meantGeneration(id)) ?? null;
      },
      ownBody(wait),
    ));
  return effects.execute(
    scope,
    commandKey(context, options, "delete-session", id),
    {
      kind: "process.deleteSession",
      input: { session: id, generation: generation ?? null },
    },
    async ({ signal }) => {
      if (meant === null) return nothingRemoved;
      const one = { id, generation: meant };
      return storable(await sessions.delete(one, { signal }));
    },
    wait,
  );
}

/**
 * An id has up to 256 characters, and each takes up to six as text. Two lists of this many ids stay
 * below the size limit of a value.
 */
const idsMax = 500;

/** The part of a report that is recorded, with as many ids as always fit. */
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
