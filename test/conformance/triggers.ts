import { afterAll, describe } from "vitest";
import type { Backend } from "./backend.ts";
import { scheduledTriggersSuite } from "./schedule/scheduled-triggers.suite.ts";
import { scheduleCatchUpSuite } from "./schedule/catch-up.suite.ts";
import { scheduleWeekSuite } from "./schedule/week.suite.ts";
import { schedulerSuite } from "./schedule/scheduler.suite.ts";
import { schedulesSuite } from "./schedule/schedules.suite.ts";
import { deliveriesSuite } from "./trigger/deliveries.suite.ts";
import { occurrenceRemovalSuite } from "./trigger/occurrence-removal.suite.ts";
import { occurrencesSuite } from "./trigger/occurrences.suite.ts";
import { subscriptionListsSuite } from "./trigger/subscription-lists.suite.ts";
import { subscriptionsSuite } from "./trigger/subscriptions.suite.ts";
import { triggerAtomicitySuite } from "./trigger/atomicity.suite.ts";
import { triggerLostAnswersSuite } from "./trigger/lost-answers.suite.ts";
import { triggerPropertySuite } from "./trigger/property.suite.ts";
import { disposeTriggers } from "./trigger/fixture.ts";

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
