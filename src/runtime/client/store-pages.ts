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

/** The stores of a database, each with the codec and limits that it was opened with. */
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

const makers = {
  executions,
  sessions,
  queue,
  leases,
  attachments,
  processes,
  effects,
  triggers,
  blobs,
  artifacts,
  maintenance,
} as const satisfies {
  readonly [Name in keyof StorePages]: (
    database: Database,
    options?: StoreOptions,
  ) => StorePages[Name];
};

/** Each is made when it is first asked for. */
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
