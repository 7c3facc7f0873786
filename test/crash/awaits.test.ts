import { describe, expect, onTestFinished, test } from "vitest";
import { awaitEvents } from "../../src/effects.ts";
import { createSession } from "../conformance/lease/leased-sessions.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

const scope = { session: "s", kind: "turn", id: "t1" };

describe("two processes at one await-event", () => {
  test("[A82] one waits and hears the answer of the other; of two answers at once exactly one wins", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await createSession(database, "s");
      const events = awaitEvents(database);
      const racers = ["ada", "bob"].map((name) => {
        const racer = new Child("await-racer.ts", [folder.file(), name]);
        onTestFinished(() => racer.kill());
        return racer;
      });
      for (const racer of racers) await racer.reported(1);
      const [ada, bob] = racers as [Child, Child];

      const first = await events.open(scope, "first");
      ada.tell("wait first");
      bob.tell(`resolve ${first.token}`);
      await ada.reported(2);
      expect(ada.lines[1]).toBe('{"kind":"resolved","value":"bob"}');
      await bob.reported(2);
      expect(bob.lines[1]).toBe('{"kind":"accepted"}');

      const rounds = isDeep ? 200 : 10;
      for (let round = 0; round < rounds; round += 1) {
        const { token } = await events.open(scope, `${round}`);
        for (const racer of racers) racer.tell(`resolve ${token}`);
        const outcome = await events.wait(scope, `${round}`);
        for (const racer of racers) await racer.reported(round + 3);
        const replies = racers.map((racer) => racer.lines[round + 2] ?? "");
        expect(replies).toContain('{"kind":"accepted"}');
        expect(replies).toContain(JSON.stringify({ kind: "late", outcome }));
        const winner = replies.indexOf('{"kind":"accepted"}');
        expect(outcome).toEqual({
          kind: "resolved",
          value: ["ada", "bob"][winner],
        });
      }
      for (const racer of racers) {
        racer.tell("end");
        expect(await racer.ended).toBe(0);
        expect(racer.errors).toBe("");
      }
    }));
});
