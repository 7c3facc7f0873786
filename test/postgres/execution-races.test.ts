import { afterAll, beforeAll, describe } from "vitest";
import { contender } from "../conformance/execution/contender.ts";
import { executionRaces } from "../conformance/execution/races.ts";
import type { Arena } from "../conformance/execution/races.ts";
import { Place } from "./place.ts";

describe("servers racing for executions on one Postgres", () => {
  let arena: Arena | undefined;
  let place: Place | undefined;

  beforeAll(async () => {
    place = await Place.prepared();
    const database = await place.open();
    const contenders = [];
    for (const name of ["a", "b", "c", "d"])
      contenders.push(contender(await place.open({ poolSize: 2 }), name));
    arena = { database, contenders };
  });

  afterAll(async () => {
    await place?.dispose();
  });

  executionRaces(() => {
    if (arena === undefined) throw new Error("Nothing was opened.");
    return arena;
  });
});
