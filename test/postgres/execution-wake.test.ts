import { expect, test } from "vitest";
import { awaitLine } from "../conformance/effect/await/line.ts";
import { wakeRounds } from "../conformance/process/wake-rounds.ts";
import { isDeep } from "../depth.ts";
import { withPlace } from "./place.ts";

const rounds = isDeep ? 300 : 20;

test(`a wait on one database is woken by a commit on another, ${rounds} times without a loss or a poll`, () =>
  withPlace(async (place) => {
    // Nothing but a notification can tell.
    const options = { pollInterval: "20 days" } as const;
    const mine = await place.open(options);
    const theirs = await place.open(options);
    await wakeRounds(mine, rounds, (line) => ({
      begun: Promise.resolve(),
      found: awaitLine(theirs, line),
    }));
    expect(theirs.stats().polls).toBe(0);
  }));
