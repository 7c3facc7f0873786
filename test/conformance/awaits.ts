import { afterAll, describe } from "vitest";
import { disposeAwaits } from "./effect/await/fixture.ts";
import { awaitEventsSuite } from "./effect/await/events.suite.ts";
import { awaitListsSuite } from "./effect/await/lists.suite.ts";
import { awaitPropertySuite } from "./effect/await/property.suite.ts";
import { awaitTokensSuite } from "./effect/await/tokens.suite.ts";
import { awaitWaitsSuite } from "./effect/await/waits.suite.ts";
import { effectGroupAttemptsSuite } from "./effect/group-attempts.suite.ts";
import { effectGroupsSuite } from "./effect/effect-groups.suite.ts";
import { effectGroupWaitsSuite } from "./effect/group-waits.suite.ts";
import type { Backend } from "./backend.ts";

/** The contract of await-events and groups, for one backend. */
export function awaitConformance(backend: Backend): void {
  describe(`on ${backend.name}`, () => {
    afterAll(() => disposeAwaits(backend));
    awaitEventsSuite(backend);
    awaitTokensSuite(backend);
    awaitListsSuite(backend);
    awaitWaitsSuite(backend);
    effectGroupsSuite(backend);
    effectGroupAttemptsSuite(backend);
    effectGroupWaitsSuite(backend);
    awaitPropertySuite(backend);
  });
}
