import { describe } from "vitest";
import type { Backend } from "./backend.ts";
import { changesSuite } from "./changes.suite.ts";
import { closeSuite } from "./close.suite.ts";
import { mistakesSuite } from "./mistakes.suite.ts";
import { openSuite } from "./open.suite.ts";
import { statementsSuite } from "./statements.suite.ts";
import { valuesSuite } from "./values.suite.ts";
import { waitsSuite } from "./waits.suite.ts";
import { writeSuite } from "./write.suite.ts";

/** The whole contract of a database, for one backend. */
export function conformance(backend: Backend): void {
  describe(`on ${backend.name}`, () => {
    openSuite(backend);
    writeSuite(backend);
    mistakesSuite(backend);
    statementsSuite(backend);
    valuesSuite(backend);
    waitsSuite(backend);
    changesSuite(backend);
    closeSuite(backend);
  });
}
