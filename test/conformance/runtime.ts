import { describe } from "vitest";
import type { Backend } from "./backend.ts";
import { runtimeAnswersSuite } from "./runtime/answers.suite.ts";
import { runtimeCancellationSuite } from "./runtime/cancellation.suite.ts";
import { runtimeClosingSuite } from "./runtime/closing.suite.ts";
import { runtimeErrorsSuite } from "./runtime/errors.suite.ts";
import { runtimeExpirySuite } from "./runtime/expiry.suite.ts";
import { runtimeFaultsSuite } from "./runtime/faults.suite.ts";
import { runtimeForgottenSuite } from "./runtime/forgotten.suite.ts";
import { runtimeHandlesSuite } from "./runtime/handles.suite.ts";
import { runtimeLifeSuite } from "./runtime/life.suite.ts";
import { runtimeLogSuite } from "./runtime/log.suite.ts";
import { runtimeLocksSuite } from "./runtime/locks.suite.ts";
import { runtimeManySuite } from "./runtime/many.suite.ts";
import { runtimeOwnLocksSuite } from "./runtime/own-locks.suite.ts";
import { runtimeProgramsSuite } from "./runtime/programs.suite.ts";
import { runtimeRegressionsSuite } from "./runtime/regressions.suite.ts";
import { runtimeReplaySuite } from "./runtime/replay.suite.ts";
import { runtimeRetentionSuite } from "./runtime/retention.suite.ts";
import { runtimeUnservedSuite } from "./runtime/unserved.suite.ts";
import { runtimeUnknownOutcomesSuite } from "./runtime/unknown-outcomes.suite.ts";
import { runtimeValuesSuite } from "./runtime/values.suite.ts";
import { runtimeVersionsSuite } from "./runtime/versions.suite.ts";
import { sharingPlaces } from "./shared-places.ts";

/** What the runtime promises, for one backend. */
export function runtimeConformance(each: Backend): void {
  describe(`on ${each.name}`, () => {
    const backend = sharingPlaces(each);
    runtimeLifeSuite(backend);
    runtimeReplaySuite(backend);
    runtimeAnswersSuite(backend);
    runtimeLocksSuite(backend);
    runtimeOwnLocksSuite(backend);
    runtimeExpirySuite(backend);
    runtimeUnknownOutcomesSuite(backend);
    runtimeCancellationSuite(backend);
    runtimeForgottenSuite(backend);
    runtimeClosingSuite(backend);
    runtimeValuesSuite(backend);
    runtimeErrorsSuite(backend);
    runtimeHandlesSuite(backend);
    runtimeLogSuite(backend);
    runtimeRetentionSuite(backend);
    runtimeFaultsSuite(backend);
    runtimeUnservedSuite(backend);
    runtimeVersionsSuite(backend);
    runtimeRegressionsSuite(backend);
    runtimeManySuite(backend);
    runtimeProgramsSuite(backend);
  });
}
