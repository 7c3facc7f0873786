import type { Database } from "../../sql/database.ts";
import { attachments, type Attachments } from "../../stores/attachment/attachments.ts";
import { artifacts, type Artifacts } from "../../stores/blob/artifacts.ts";
import { blobs, type Blobs } from "../../stores/blob/blobs.ts";
import type { StoreOptions } from "../../stores/context.ts";
import { effects, type Effects } from "../../stores/effect/effects.ts";
import { executions, type Executions } from "../../stores/execution/executions.ts";
import { leases, type Leases } from "../../stores/lease/leases.ts";
import { maintenance, type Maintenance } from "../../stores/maintenance/maintenance.ts";
import { processes, type Processes } from "../../stores/process/processes.ts";
import { queue, type Queue } from "../../stores/queue/queue.ts";
import { sessions, type Sessions } from "../../stores/session/sessions.ts";
import { triggers, type Triggers } from "../../stores/trigger/triggers.ts";

/** The stores of a database, each with the database's codec and limits. */
export interface StorePages {
  readonly executions: Executions;
  readonly sessions: Sessions;
  readonly queue: Queue;
  readonly leases: Leases;
  readonly attachments: Attachments;
  readonly processes: Processes;
  readonly effects: Effects;
  readonly triggers: Triggers;
  readonly blobs: Blobs;
  readonly artifacts: Artifacts;
  readonly maintenance: Maintenance;
}

/** Bytes are stored as given, so their stores take no codec and no value limits. */
const makers = {
  executions,
  sessions,
  queue,
  leases,
  attachments: (database, { clock, entropy } = {}) =>
    attachments(database, { ...(clock && { clock }), ...(entropy && { entropy }) }),
  processes,
  effects,
  triggers,
  blobs: (database, { clock } = {}) => blobs(database, clock && { clock }),
  artifacts: (database, { clock } = {}) => artifacts(database, clock && { clock }),
  maintenance,
} as const satisfies {
  readonly [Name in keyof StorePages]: (
    database: Database,
    options?: StoreOptions,
  ) => StorePages[Name];
};

/** Makes the stores; each is created on first access. */
export function storePages(database: Database, options: StoreOptions): StorePages {
  const pages = {} as Record<string, unknown>;
  for (const [name, make] of Object.entries(makers))
    Object.defineProperty(pages, name, {
      enumerable: true,
      configurable: true,
      get() {
        const value: unknown = make(database, options);
        Object.defineProperty(pages, name, { value, enumerable: true });
        return value;
      },
    });
  return pages as unknown as StorePages;
}
