import { afterwardsSuite } from "./kernel/afterwards.suite.ts";
import { callerLinesSuite } from "./kernel/caller-lines.suite.ts";
import { changesSuite } from "./kernel/changes.suite.ts";
import { closeSuite } from "./kernel/close.suite.ts";
import { isolationSuite } from "./kernel/isolation.suite.ts";
import { mistakesSuite } from "./kernel/mistakes.suite.ts";
import { openSuite } from "./kernel/open.suite.ts";
import { setUpSuite } from "./kernel/set-up.suite.ts";
import { statementsSuite } from "./kernel/statements.suite.ts";
import { valuesSuite } from "./kernel/values.suite.ts";
import { waitUntilSuite } from "./kernel/wait-until.suite.ts";
import { waitsSuite } from "./kernel/waits.suite.ts";
import { writeSuite } from "./kernel/write.suite.ts";
import type { Backend } from "./backend.ts";
import { sharingPlaces } from "./shared-places.ts";
import { describe } from "vitest";

/** What any database must do, for one backend. */
export function kernelConformance(backend: Backend): void {
  describe(`on ${backend.name}`, () => {
    openSuite(backend);
    const sharing = sharingPlaces(backend);
    writeSuite(sharing);
    afterwardsSuite(sharing);
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
