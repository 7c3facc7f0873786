import { bytes } from "./bytes.ts";
import { fanout } from "./fanout.ts";
import { flat } from "./flat.ts";
import { idle } from "./idle.ts";
import { latency } from "./latency.ts";
import { postgres } from "./postgres.ts";
import { recovery } from "./recovery.ts";
import { replay } from "./replay.ts";
import { steps } from "./steps.ts";

export const runtimeBenchmarks: Readonly<Record<string, () => Promise<object>>> = {
  "runtime.steps": steps,
  "runtime.postgres": postgres,
  "runtime.flat": flat,
  "runtime.replay": replay,
  "runtime.recovery": recovery,
  "runtime.latency": latency,
  "runtime.idle": idle,
  "runtime.fanout": fanout,
  "runtime.bytes": bytes,
};
