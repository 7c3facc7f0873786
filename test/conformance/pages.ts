import { describe } from "vitest";
import type { Backend } from "./backend.ts";
import { isDeep } from "../depth.ts";
import { bytesSuite } from "./pages/bytes.suite.ts";
import { fuzzSuite } from "./pages/fuzz.suite.ts";
import { missingNamesSuite, readsInWritesSuite } from "./pages/reads-in-writes.suite.ts";
import { sharingPlaces } from "./shared-places.ts";

/** What every page has in common, for one backend. */
export function pageConformance(
  backend: Backend,
  { oneIn = 1 }: { readonly oneIn?: number } = {},
): void {
  describe(`on ${backend.name}`, () => {
    bytesSuite(sharingPlaces(backend));
    readsInWritesSuite(sharingPlaces(backend));
    missingNamesSuite(sharingPlaces(backend));
    fuzzSuite(sharingPlaces(backend), { oneIn: isDeep ? 1 : oneIn });
  });
}
