import { callerLinesSuite } from "./caller-lines.suite.ts";
import { changesSuite } from "./changes.suite.ts";
import { closeSuite } from "./close.suite.ts";
import { isolationSuite } from "./isolation.suite.ts";
import { mistakesSuite } from "./mistakes.suite.ts";
import { openSuite } from "./open.suite.ts";
import { setUpSuite } from "./set-up.suite.ts";
import { statementsSuite } from "./statements.suite.ts";
import { valuesSuite } from "./values.suite.ts";
import { waitUntilSuite } from "./wait-until.suite.ts";
import { waitsSuite } from "./waits.suite.ts";
import { writeSuite } from "./write.suite.ts";
import type { Backend } from "./backend.ts";
import { sharingPlaces } from "./shared-places.ts";
import { describe } from "vitest";

/** What any database must do, for one backend. */
export function kernelConformance(backend: Backend): void {
  describe(`on ${backend.name}`, () => {
    openSuite(backend);
    const sharing = sharingPlaces(backend);
    writeSuite(sharing);
    mistakesSuite(sharing);
    isolationSuite(sharing);
    callerLinesSuite(sharing);
    statementsSuite(sharing);
    valuesSuite(sharing);
    setUpSuite(sharing);
    const used = { ...backend, place: backend.usedPlace ?? backend.place };
    waitsSuite(used);
    changesSuite(used);
    closeSuite(used);
    waitUntilSuite(used);
  });
}
