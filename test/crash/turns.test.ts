import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { sessions } from "../../src/sessions.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { preparedTurn } from "./turn.ts";

describe("two processes that race for one session", () => {
  test("of every revision exactly one commits, and the other is told so and may retry", () =>
    withFolder(async (folder) => {
      const prepared = await folder.open({ clock: manualClock(1_000) });
      const order = await preparedTurn(prepared);
      await prepared.close();
      const fence = JSON.stringify(order.fence);
      const racers = ["a", "b"].map(
        (name) => new Child("turn-racer.ts", [folder.file(), name, fence]),
      );
      for (const racer of racers) await racer.reported(1);
      const rounds = isDeep ? 200 : 10;
      for (let round = 0; round < rounds; round += 1) {
        for (const racer of racers) racer.tell(String(round + 1));
        for (const racer of racers) await racer.reported(round + 2);
        const answers = racers.map((racer) => racer.lines[round + 1]);
        expect(new Set(answers)).toEqual(
          new Set(["REVISION_CONFLICT retryable", `committed ${round + 2}`]),
        );
      }
      for (const racer of racers) {
        racer.tell("end");
        expect(await racer.ended).toBe(0);
        expect(racer.errors).toBe("");
      }
      const database = await folder.open({ clock: manualClock(2_000) });
      const { head, path } = await sessions(database).load("s");
      expect(head.revision).toBe(rounds + 1);
      expect(path.nodes).toHaveLength(rounds + 1);
    }));
});
