import { artifacts } from "../../../src/blobs.ts";
import type { Database } from "../../../src/sql/database.ts";
import { effects } from "../../../src/effects.ts";
import type { Tx } from "../../../src/sql/operation.ts";
import { bytesOf } from "../blob/owners.ts";
import { pageMakers, writeRows } from "./fixture.ts";
import type { PageName } from "./fixture.ts";
import { withoutWait } from "./fuzz.suite.ts";
import type { Calls } from "./valid-call.ts";
import { validCalls } from "./valid-calls.ts";

/** How a prepared read may stand in a write that is readCommitted. */
type Stand =
  | { readonly kind: "locks"; readonly table: string }
  /** It names many things, or what is no thing of its own. */
  | { readonly kind: "refused" }
  | { readonly kind: "safe"; readonly because: string };

const refused: Stand = { kind: "refused" };

function locks(table: string): Stand {
  return { kind: "locks", table };
}

function safe(because: string): Stand {
  return { kind: "safe", because };
}

const session = locks("holdfast_session");
const execution = locks("holdfast_execution");
const process = locks("holdfast_process");
const artifact = locks("holdfast_artifact");
const settled = safe("what is recorded stays as it is, and nothing is claimed");

/**
 * Every read of every page. A body reads, decides and writes; on Postgres what
 * it read may have changed in between, unless the row is locked that whoever
 * changes it locks too. So a new read locks the root row of what it names, or
 * is refused, or stands here with the reason why it can do without.
 */
export const stands: Readonly<Record<string, Stand>> = {
  "executions.get": execution,
  "executions.load": execution,
  "executions.created": execution,
  "executions.result": execution,
  "executions.event": execution,
  "executions.lastEvent": execution,
  "executions.events": execution,
  "executions.responses": execution,
  "executions.backtrace": execution,
  "executions.logs": refused,
  "executions.list": refused,
  "executions.cancelling": refused,
  "executions.tree": refused,
  "executions.questions": refused,
  "executions.nextTimerAt": refused,
  "sessions.open": session,
  "sessions.meta": session,
  "sessions.head": session,
  "sessions.load": session,
  "sessions.path": session,
  "sessions.graph": session,
  "sessions.node": session,
  "sessions.nodes": session,
  "sessions.components": session,
  "sessions.list": refused,
  "queue.list": session,
  "processes.get": process,
  "processes.output": process,
  "processes.events": process,
  "processes.recent": process,
  "processes.count": process,
  "processes.grants": process,
  "processes.hasHandle": process,
  "processes.handles": refused,
  "processes.list": refused,
  "processes.changes": safe("what the feed has shown stays, and what comes is behind its cursor"),
  "effects.get": locks("holdfast_effect"),
  "effects.list": refused,
  "replayedEffects.claim": settled,
  "replayedEffects.record": settled,
  "replayedEffects.get": locks("holdfast_effect"),
  "replayedEffects.list": refused,
  "awaitEvents.list": refused,
  "triggers.get": locks("holdfast_trigger_subscription"),
  "triggers.occurrence": locks("holdfast_trigger_occurrence"),
  "triggers.list": refused,
  "triggers.occurrences": refused,
  "triggers.unstarted": refused,
  "schedules.get": locks("holdfast_schedule"),
  "schedules.list": refused,
  "blobs.get": safe("the bytes of a hash are always the same"),
  "blobs.keeps": refused,
  "attachments.list": session,
  "attachments.listUncommitted": session,
  "artifacts.get": artifact,
  "artifacts.load": artifact,
  "artifacts.list": refused,
};

/** A read of a page, and the same prepared. */
export interface PreparedRead {
  readonly name: string;
  readonly call: () => Promise<unknown>;
  readonly part: () => Tx<unknown>;
}

type Read = ((...args: readonly unknown[]) => Promise<unknown>) & {
  readonly kind?: "read" | "write";
  readonly prepare: (...args: readonly unknown[]) => () => Tx<unknown>;
};

/** Every read of every page that can be prepared, with arguments that name what is there. */
export async function preparedReads(database: Database): Promise<readonly PreparedRead[]> {
  const calls = validCalls(await writeRows(database));
  await artifacts(database).put("space", "name", bytesOf("artifact"));
  const pages: readonly (readonly [string, object, Calls])[] = [
    ...Object.entries(pageMakers).map(
      ([name, make]) => [name, make(database), calls[name as PageName]] as const,
    ),
    ["replayedEffects", effects(database, { replayOnly: true }), calls.effects],
  ];
  return pages.flatMap(([page, methods, valid]) =>
    Object.entries(methods as Readonly<Record<string, Read>>)
      .filter(([, method]) => method.kind === "read")
      .map(([name, method]): PreparedRead => {
        const args = withoutWait(valid[name]?.args ?? []);
        return {
          name: `${page}.${name}`,
          call: () => method(...args),
          part: method.prepare(...args),
        };
      }),
  );
}
