import { afterAll, describe } from "vitest";
import { disposeAwaits } from "./effect/await/fixture.ts";
import { awaitEventsSuite } from "./effect/await/events.suite.ts";
import { awaitListsSuite } from "./effect/await/lists.suite.ts";
import { awaitPropertySuite } from "./effect/await/property.suite.ts";
import { awaitTokensSuite } from "./effect/await/tokens.suite.ts";
import { awaitWaitsSuite } from "./effect/await/waits.suite.ts";
import type { Backend } from "./backend.ts";

/** The contract of await-events, for one backend. */
export function awaitConformance(backend: Backend): void {
  describe(`on ${backend.name}`, () => {
    afterAll(() => disposeAwaits(backend));
    awaitEventsSuite(backend);
    awaitTokensSuite(backend);
    awaitListsSuite(backend);
    awaitWaitsSuite(backend);
    awaitPropertySuite(backend);
  });
}
