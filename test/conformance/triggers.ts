import { afterAll, describe } from "vitest";
import type { Backend } from "./backend.ts";
import { scheduledTriggersSuite } from "./scheduled-triggers.suite.ts";
import { scheduleCatchUpSuite } from "./schedule-catch-up.suite.ts";
import { scheduleWeekSuite } from "./schedule-week.suite.ts";
import { schedulerSuite } from "./scheduler.suite.ts";
import { schedulesSuite } from "./schedules.suite.ts";
import { deliveriesSuite } from "./deliveries.suite.ts";
import { occurrenceRemovalSuite } from "./occurrence-removal.suite.ts";
import { occurrencesSuite } from "./occurrences.suite.ts";
import { subscriptionListsSuite } from "./subscription-lists.suite.ts";
import { subscriptionsSuite } from "./subscriptions.suite.ts";
import { triggerAtomicitySuite } from "./trigger-atomicity.suite.ts";
import { triggerLostAnswersSuite } from "./trigger-lost-answers.suite.ts";
import { triggerPropertySuite } from "./trigger-property.suite.ts";
import { disposeTriggers } from "./trigger-scene.ts";

/** The contract of triggers and schedules, for one backend. */
export function triggerConformance(backend: Backend): void {
  describe(`on ${backend.name}`, () => {
    afterAll(() => disposeTriggers(backend));
    schedulesSuite(backend);
    schedulerSuite(backend);
    scheduleCatchUpSuite(backend);
    scheduleWeekSuite(backend);
    subscriptionsSuite(backend);
    subscriptionListsSuite(backend);
    occurrencesSuite(backend);
    deliveriesSuite(backend);
    occurrenceRemovalSuite(backend);
    scheduledTriggersSuite(backend);
    triggerAtomicitySuite(backend);
    triggerLostAnswersSuite(backend);
    triggerPropertySuite(backend);
  });
}
