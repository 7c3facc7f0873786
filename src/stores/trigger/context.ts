import type { HashValue } from "../../model/session/turn.ts";
import type { Database } from "../../sql/database.ts";
import { storeContext, type StoreContext, type StoreOptions } from "../context.ts";
import { processes, type Processes } from "../process/processes.ts";

/** The context of triggers. Started processes are written through it as `processes` writes them. */
export interface TriggerContext extends StoreContext {
  readonly hash: HashValue;
  readonly processes: Processes;
}

export function triggerContext(
  database: Database,
  options: StoreOptions | undefined,
): TriggerContext {
  const context = storeContext(database, options);
  const { codec } = context;
  return {
    ...context,
    processes: processes(database, options),
    hash: (domain, version, value) => codec.hash(domain, version, value),
  };
}
