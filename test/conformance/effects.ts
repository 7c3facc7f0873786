import { afterAll, describe } from "vitest";
import type { Backend } from "./backend.ts";
import { effectBorderSuite } from "./effect/border.suite.ts";
import { effectClaimsSuite } from "./effect/claims.suite.ts";
import { effectDeletionsSuite } from "./effect/deletions.suite.ts";
import { effectExecuteSuite } from "./effect/execute.suite.ts";
import { effectPropertySuite } from "./effect/property.suite.ts";
import { effectProcessesSuite } from "./effect/processes.suite.ts";
import { effectRecordSuite } from "./effect/record.suite.ts";
import { effectReplaySuite } from "./effect/replay.suite.ts";
import { effectTransactSuite } from "./effect/transact.suite.ts";
import { effectUnrecordedSuite } from "./effect/unrecorded.suite.ts";
import { effectWaitsSuite } from "./effect/waits.suite.ts";
import { disposeEffects } from "./effect/fixture.ts";

/** The contract of effects, for one backend. */
export function effectConformance(backend: Backend): void {
  describe(`on ${backend.name}`, () => {
    afterAll(() => disposeEffects(backend));
    effectClaimsSuite(backend);
    effectExecuteSuite(backend);
    effectUnrecordedSuite(backend);
    effectReplaySuite(backend);
    effectWaitsSuite(backend);
    effectBorderSuite(backend);
    effectRecordSuite(backend);
    effectTransactSuite(backend);
    effectProcessesSuite(backend);
    effectDeletionsSuite(backend);
    effectPropertySuite(backend);
  });
}
