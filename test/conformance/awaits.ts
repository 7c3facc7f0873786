import { afterAll, describe } from "vitest";
import { disposeAwaits } from "./await-scene.ts";
import { awaitEventsSuite } from "./await-events.suite.ts";
import { awaitListsSuite } from "./await-lists.suite.ts";
import { awaitPropertySuite } from "./await-property.suite.ts";
import { awaitTokensSuite } from "./await-tokens.suite.ts";
import { awaitWaitsSuite } from "./await-waits.suite.ts";
import { effectGroupAttemptsSuite } from "./effect-group-attempts.suite.ts";
import { effectGroupsSuite } from "./effect-groups.suite.ts";
import { effectGroupWaitsSuite } from "./effect-group-waits.suite.ts";
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
