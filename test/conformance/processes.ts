import { afterAll, describe } from "vitest";
import type { Backend } from "./backend.ts";
import { backgroundBorderSuite } from "./background-border.suite.ts";
import { processEndsSuite } from "./process/ends.suite.ts";
import { processEnvironmentsSuite } from "./process/environments.suite.ts";
import { processEventsSuite } from "./process/events.suite.ts";
import { processFaultsSuite } from "./process/faults.suite.ts";
import { processFeedSuite } from "./process/feed.suite.ts";
import { processHandlesSuite } from "./process/handles.suite.ts";
import { processSpawnSuite } from "./process/spawn.suite.ts";
import { processValuesSuite } from "./process/values.suite.ts";
import { processWaitsSuite } from "./process/waits.suite.ts";
import { processWakesSuite } from "./process/wakes.suite.ts";
import { processLeasesSuite } from "./process/leases.suite.ts";
import { processPropertySuite } from "./process/property.suite.ts";
import { processRecoverySuite } from "./process/recovery.suite.ts";
import { processRegisterSuite } from "./process/register.suite.ts";
import { disposeProcesses } from "./process/fixture.ts";

/** The contract of the process registry, for one backend. */
export function processConformance(backend: Backend): void {
  describe(`on ${backend.name}`, () => {
    afterAll(() => disposeProcesses(backend));
    processRegisterSuite(backend);
    processEnvironmentsSuite(backend);
    processEventsSuite(backend);
    processValuesSuite(backend);
    processEndsSuite(backend);
    processWakesSuite(backend);
    processHandlesSuite(backend);
    processWaitsSuite(backend);
    processLeasesSuite(backend);
    processRecoverySuite(backend);
    processFeedSuite(backend);
    processSpawnSuite(backend);
    processFaultsSuite(backend);
    backgroundBorderSuite(backend);
    processPropertySuite(backend);
  });
}
