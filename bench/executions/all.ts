import { append } from "./append.ts";
import { endings } from "./endings.ts";
import { growth } from "./growth.ts";
import { lock } from "./lock.ts";
import { postgres } from "./postgres.ts";
import { retention } from "./retention.ts";
import { timers } from "./timers.ts";
import { waiters } from "./waiters.ts";

export const executionBenchmarks: Readonly<Record<string, () => Promise<object>>> = {
  "executions.append": append,
  "executions.waiters": waiters,
  "executions.lock": lock,
  "executions.timers": timers,
  "executions.retention": retention,
  "executions.postgres": postgres,
  "executions.endings": endings,
};

/** Take minutes and gigabytes, so they run only when asked for by their whole name. */
export const executionBenchmarksOnDemand: Readonly<Record<string, () => Promise<object>>> = {
  "executions.growth": growth,
};
