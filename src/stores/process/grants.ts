import { handleNotGranted } from "../../model/process/errors.ts";
import { parseProcessId, type ProcessId } from "../../model/ids/process-id.ts";
import type { SessionScope } from "../../model/process/process.ts";
import { givenList } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import {
  row,
  rows,
  run,
  storeOperation,
  type StoreOperation,
  type Tx,
} from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { numberAt, textAt } from "../cursor.ts";
import { list, pageOf, sliced, type List, type PageOptions, type Place } from "../list.ts";
import { onlyWait, type Call } from "../method.ts";
import type { ProcessContext } from "./context.ts";
import {
  grant,
  grantColumns,
  grantOf,
  isGrant,
  type GrantHandle,
  type GrantRow,
  type ProcessGrant,
} from "./grant-row.ts";
import {
  checkedDescriptor,
  keptScope,
  livingScope,
  scopeNamed,
  type ProcessHandleDraft,
  type SessionScopeName,
  type SessionScopeRef,
} from "./parts.ts";
import { foundProcess, lockedProcess, lockedProcesses, type ProcessRoot } from "./process-row.ts";

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `NAME_INVALID` */
export function givenGrant(
  { clock }: ProcessContext,
  process: string,
  scope: SessionScopeName,
  descriptor: ProcessHandleDraft = {},
  wait?: WaitOptions,
): Call<GrantHandle> {
  const input = {
    process: parseProcessId(process),
    scope: scopeNamed(scope),
    descriptor: checkedDescriptor(descriptor),
    at: clock.now(),
  };
  return { input, wait: onlyWait(wait) };
}

/** See `grant` of the rows. */
export const grantHandle: StoreOperation<ProcessContext, GrantHandle, void> = storeOperation(
  "grantHandle",
  {
    key: (input: GrantHandle) => input.process,
    one: (_: ProcessContext, input) => grant(input),
  },
);

interface OfScope {
  readonly process: ProcessId;
  readonly scope: SessionScopeRef;
}

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `NAME_INVALID` */
export function givenOfScope(
  _: ProcessContext,
  process: string,
  scope: SessionScopeName,
  wait?: WaitOptions,
): Call<OfScope> {
  const input = { process: parseProcessId(process), scope: scopeNamed(scope) };
  return { input, wait: onlyWait(wait) };
}

/**
 * Revokes a handle; false when there was none.
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const revokeHandle = storeOperation("revokeHandle", {
  key: (input) => input.process,
  *one(_: ProcessContext, { process, scope }: OfScope): Tx<boolean> {
    const { key } = yield* lockedProcess(process);
    const held = yield* livingScope(scope);
    const removed = yield* run(sql`
      DELETE FROM holdfast_process_grant WHERE ${isGrant(key, held)}`);
    return removed > 0;
  },
});

/**
 * Tests whether a session, or one frame of it, has a handle.
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const readGrant = storeOperation("readGrant", {
  key: (input) => input.process,
  *one(_: ProcessContext, { process, scope }: OfScope): Tx<boolean> {
    const { key } = yield* foundProcess(process);
    const held = yield* livingScope(scope);
    const found = yield* row(sql`
      SELECT process FROM holdfast_process_grant WHERE ${isGrant(key, held)}`);
    return found !== undefined;
  },
});

interface TransferHandles {
  readonly from: SessionScopeRef;
  readonly to: SessionScopeRef;
  readonly processes: readonly ProcessId[];
}

const transferMax = 1_000;

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `NAME_INVALID` */
export function givenTransfer(
  _: ProcessContext,
  from: SessionScopeName,
  to: SessionScopeName,
  processes: readonly string[],
  wait?: WaitOptions,
): Call<TransferHandles> {
  const input = {
    from: scopeNamed(from, "from"),
    to: scopeNamed(to, "to"),
    processes: givenList("processes", processes, transferMax).map((id) => parseProcessId(id)),
  };
  return { input, wait: onlyWait(wait) };
}

/**
 * Moves handles from one session to another, all or nothing. Their labels move too, and replace
 * those of the target. May be repeated.
 *
 * @throws HoldfastError `HANDLE_NOT_GRANTED`, `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`,
 *   `SESSION_DELETED`
 */
export const transferHandles = storeOperation("transferHandles", {
  key: (input) => input.from.session.id,
  *one(_: ProcessContext, { from, to, processes }: TransferHandles): Tx<void> {
    const roots = yield* lockedProcesses(processes);
    const target = yield* keptScope(to);
    const source = yield* livingScope(from);
    for (const root of roots) yield* moveGrant(root, source, target);
  },
});

function* moveGrant(
  { id, key }: ProcessRoot,
  source: SessionScope,
  target: SessionScope,
): Tx<void> {
  const { session, generation, frame } = target;
  const moved = yield* run(sql`
    INSERT INTO holdfast_process_grant (process, session, generation, frame, kind, label, granted_at)
    SELECT process, ${session}, CAST(${generation} AS BIGINT), ${frame ?? ""}, kind, label, granted_at
    FROM holdfast_process_grant WHERE ${isGrant(key, source)}
    ON CONFLICT (process, session, generation, frame)
    DO UPDATE SET kind = excluded.kind, label = excluded.label`);
  if (moved === 0) {
    // A handle that was moved before counts as moved.
    const there = yield* row(sql`
      SELECT process FROM holdfast_process_grant WHERE ${isGrant(key, target)}`);
    if (there === undefined) throw handleNotGranted(id, source.session);
    return;
  }
  const isSame =
    source.session === session && source.generation === generation && source.frame === frame;
  if (!isSame)
    yield* run(sql`
      DELETE FROM holdfast_process_grant WHERE ${isGrant(key, source)}`);
}

/**
 * The holders of handles of a process, by session and frame.
 * @throws HoldfastError `PROCESS_NOT_FOUND`
 */
export const grantList: List<
  ProcessContext,
  [process: string, options?: PageOptions],
  ProcessGrant
> = list("listGrants", {
  table: "holdfast_process_grant",
  given(_: ProcessContext, process: string, options?: PageOptions) {
    const { page } = pageOf(options, []);
    return { filter: { process: parseProcessId(process) }, page };
  },
  *slice(_, { process }: { readonly process: ProcessId }, bounds) {
    const { key } = yield* foundProcess(process);
    return yield* sliced(
      bounds,
      ({ session, generation, frame }: GrantRow) => [session, generation, frame],
      function* (after, count) {
        return yield* grantRows(key, after, count);
      },
    );
  },
  keyOf: ({ session, generation, frame }: GrantRow) => `${session}/${generation}/${frame}`,
  itemOf: (_, found) => grantOf(found),
});

function* grantRows(
  process: number,
  after: Place | undefined,
  count: number,
): Tx<readonly GrantRow[]> {
  const behind =
    after === undefined
      ? sql``
      : sql`AND (g.session, g.generation, g.frame) > (${textAt(after, 0)}, ${numberAt(after, 1)}, ${textAt(after, 2)})`;
  return yield* rows<GrantRow>(sql`
    SELECT ${grantColumns} FROM holdfast_process_grant g
    WHERE g.process = ${process} ${behind}
    ORDER BY g.session, g.generation, g.frame LIMIT ${count}`);
}
