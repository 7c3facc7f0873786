import { parseProcessId } from "../../model/process-id.ts";
import {
  checkedText,
  givenFlag,
  givenList,
  givenObject,
  optionsOf,
} from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import {
  cursorInvalid,
  cursorPlace,
  cursorText,
  keyPlace,
  nextCursor,
} from "../cursor.ts";
import type { Page, PageOptions } from "../list.ts";
import { checkedLimit, pageNames } from "../paging.ts";
import type { ProcessSurroundings } from "./context.ts";
import { grantHandle, revokeHandle, transferHandles } from "./grant.ts";
import type { ProcessHandleDescriptor } from "./grant.ts";
import { listGrants, listHandles, readGrant } from "./read-grants.ts";
import type {
  GrantPlace,
  ListHandles,
  ProcessGrant,
  ProcessHandle,
} from "./read-grants.ts";
import { scopeNamed } from "./scope.ts";
import type { SessionScopeName } from "./scope.ts";

/** What the holder of a handle calls it. */
export type ProcessHandleDraft = Partial<ProcessHandleDescriptor>;

/** Which sessions may address which processes. */
export interface ProcessHandles {
  /**
   * Lets a session, or one frame of it, address a process.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example await processes.grant("build-7", { session: "chat-7", frame: "planner" }, { label: "the build" });
   */
  grant(
    process: string,
    scope: SessionScopeName,
    descriptor?: ProcessHandleDraft,
    wait?: WaitOptions,
  ): Promise<void>;
  /** Takes a handle back; false when there was none. */
  revoke(
    process: string,
    scope: SessionScopeName,
    wait?: WaitOptions,
  ): Promise<boolean>;
  /**
   * Moves handles from one session to another: all of them, or none.
   * @throws HoldfastError `HANDLE_NOT_GRANTED`, `PROCESS_NOT_FOUND` …
   */
  transfer(
    from: SessionScopeName,
    to: SessionScopeName,
    processes: readonly string[],
    wait?: WaitOptions,
  ): Promise<void>;
  /** Whether a session, or one frame of it, has a handle. @throws HoldfastError `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  hasHandle(
    process: string,
    scope: SessionScopeName,
    wait?: WaitOptions,
  ): Promise<boolean>;
  /** The handles of a session, or of one frame of it, in the order in which their processes were registered; `get` shows what was given to one. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CURSOR_INVALID` */
  handles(
    scope: SessionScopeName,
    options?: ListHandlesOptions,
  ): Promise<Page<ProcessHandle>>;
  /** Who has handles of a process, by session and frame. @throws HoldfastError `PROCESS_NOT_FOUND`, `CURSOR_INVALID` */
  grants(process: string, options?: PageOptions): Promise<Page<ProcessGrant>>;
}

export interface ListHandlesOptions extends PageOptions {
  /** Only of processes that run; all unless told. */
  readonly live?: boolean;
}

export function processHandles(around: ProcessSurroundings): ProcessHandles {
  const { database, clock } = around;
  return {
    async grant(process, scope, descriptor = {}, wait) {
      await database.write(
        grantHandle,
        {
          process: parseProcessId(process),
          scope: scopeNamed(scope),
          descriptor: checkedDescriptor(descriptor),
          at: clock.now(),
        },
        wait,
      );
    },
    async revoke(process, scope, wait) {
      return database.write(
        revokeHandle,
        { process: parseProcessId(process), scope: scopeNamed(scope) },
        wait,
      );
    },
    async transfer(from, to, processes, wait) {
      await database.write(
        transferHandles,
        {
          from: scopeNamed(from),
          to: scopeNamed(to),
          processes: givenList("processes", processes, transferMax).map(
            parseProcessId,
          ),
        },
        wait,
      );
    },
    async hasHandle(process, scope, wait) {
      return database.read(
        readGrant,
        { process: parseProcessId(process), scope: scopeNamed(scope) },
        wait,
      );
    },
    handles: (scope, options) => listed(around, scope, options),
    grants: (process, options) => granted(around, process, options),
  };
}

async function listed(
  { database }: ProcessSurroundings,
  scope: SessionScopeName,
  options: ListHandlesOptions | undefined,
): Promise<Page<ProcessHandle>> {
  const known = [...pageNames, "live"] as const;
  const { signal, timeout } = optionsOf(options, known);
  const { input, cursor } = handlesAsked(scope, options);
  const { items, damaged, next } = await database.read(listHandles, input, {
    signal,
    timeout,
  });
  return { items, damaged, next: nextCursor(cursor, next) };
}

/** What `listHandles` takes, and what its cursors belong to. */
export function handlesAsked(
  name: SessionScopeName,
  options: Omit<ListHandlesOptions, keyof WaitOptions> | undefined,
): { readonly input: ListHandles; readonly cursor: string } {
  const { live, after, limit } = optionsOf(options);
  const isLive = givenFlag("live", live) ?? false;
  const scope = scopeNamed(name);
  const cursor = `handles:${JSON.stringify([scope.session.id, scope.frame, isLive])}`;
  return {
    input: {
      scope,
      isLive,
      after: after === undefined ? 0 : keyPlace(cursor, after),
      limit: checkedLimit(limit),
    },
    cursor,
  };
}

async function granted(
  { database }: ProcessSurroundings,
  name: string,
  options: PageOptions | undefined,
): Promise<Page<ProcessGrant>> {
  const { after, limit, ...wait } = optionsOf(options);
  const process = parseProcessId(name);
  const owner = `grants:${process}`;
  const input = {
    process,
    after: after === undefined ? undefined : grantPlace(owner, after),
    limit: checkedLimit(limit),
  };
  const { items, next } = await database.read(listGrants, input, wait);
  return {
    items,
    damaged: [],
    next:
      next && cursorText(owner, [next.session, next.generation, next.frame]),
  };
}

function grantPlace(owner: string, cursor: string): GrantPlace {
  const [session, generation, frame] = cursorPlace(owner, cursor);
  if (
    typeof session !== "string" ||
    typeof frame !== "string" ||
    !Number.isSafeInteger(generation)
  )
    throw cursorInvalid("malformed");
  return { session, generation: generation as number, frame };
}

const labelCharactersMax = 512;
const transferMax = 1_000;

/** @throws HoldfastError `NAME_INVALID` */
export function checkedDescriptor(
  draft: ProcessHandleDraft,
): ProcessHandleDescriptor {
  const { kind = null, label = null } = givenObject("descriptor", draft);
  return {
    kind: kind === null ? null : checkedText("The kind of a handle", kind),
    label:
      label === null
        ? null
        : checkedText("The label of a handle", label, labelCharactersMax),
  };
}
