import { copyFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/clock.ts";
import { sessions } from "../../src/stores/session/index.ts";
import { dumpOf } from "../conformance/session-scene.ts";
import type { Dump } from "../conformance/session-scene.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import type { Folder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { killPoints, preparedTurn, wholeTurn } from "./turn.ts";
import type { PreparedTurn, TurnOrder } from "./turn.ts";

/** A file with a session for which a turn is ready to be committed. */
async function prepared(folder: Folder): Promise<PreparedTurn> {
  const database = await folder.open({ clock: manualClock(1_000) });
  const ready = await preparedTurn(database);
  await database.close();
  return ready;
}

describe("a turn commit that is killed", () => {
  test(
    "[AX21] at every statement leaves the old state or the new one, entirely, and can be repeated",
    { timeout: 300_000 },
    () =>
      withFolder(async (folder) => {
        const { order, before } = await prepared(folder);
        const committed = async (
          name: string,
          at: number,
          when: "before" | "after",
        ): Promise<Child> => {
          copyFileSync(folder.file(), folder.file(name));
          const child = new Child("turn-committer.ts", [
            folder.file(name),
            at,
            when,
            JSON.stringify(order),
          ]);
          await child.ended;
          expect(child.errors).toBe("");
          return child;
        };
        const whole = await committed("whole.db", 0, "before");
        expect(await whole.ended).toBe(0);
        const [, count = 0] =
          /^committed (\d+)$/.exec(whole.lines[0] ?? "") ?? [];
        const statements = Number(count);
        expect(statements).toBeGreaterThan(20);
        const after = await stateOf(folder, "whole.db");
        expect(after).not.toEqual(before);

        const points = killPoints(statements);
        const seen = { old: 0, new: 0 };
        const work = points.values();
        const killOneByOne = async (): Promise<void> => {
          for (const { at, when } of work) {
            const name = `${when}-${at}.db`;
            const child = await committed(name, at, when);
            expect(await child.ended).toBe("SIGKILL");
            seen[await survivedBy(folder, name, order, { before, after })] += 1;
          }
        };
        await Promise.all([killOneByOne(), killOneByOne()]);
        expect(seen.old).toBeGreaterThan(points.length / 2);
        expect(seen.new).toBeGreaterThan(0);
      }),
  );
});

async function stateOf(folder: Folder, name: string): Promise<Dump> {
  const database = await folder.open({ clock: manualClock(2_000) }, {}, name);
  const state = await dumpOf(database);
  await database.close();
  return state;
}

/** Which state a kill left. Whoever repeats the turn then gets the same answer in either case. */
async function survivedBy(
  folder: Folder,
  name: string,
  order: TurnOrder,
  { before, after }: { readonly before: Dump; readonly after: Dump },
): Promise<"old" | "new"> {
  const database = await folder.open({ clock: manualClock(2_000) }, {}, name);
  const state = await dumpOf(database);
  const isNew = JSON.stringify(state) === JSON.stringify(after);
  if (!isNew) expect(state).toEqual(before);
  const store = sessions(database);
  const handle = await store.open("s");
  if (handle === undefined) throw new Error("The session is gone.");
  expect(await store.commit(handle, wholeTurn(order))).toMatchObject({
    kind: isNew ? "replayed" : "committed",
    revision: 2,
    leaf: "own",
    changed: { tools: { version: 2, revision: 2 } },
  });
  expect(await dumpOf(database)).toEqual(after);
  await database.close();
  return isNew ? "new" : "old";
}

describe("two processes that race for one session", () => {
  test("of every revision exactly one commits, and the other is told so and may retry", () =>
    withFolder(async (folder) => {
      const { order } = await prepared(folder);
      const fence = JSON.stringify(order.fence);
      const racers = ["a", "b"].map(
        (name) => new Child("turn-racer.ts", [folder.file(), name, fence]),
      );
      for (const racer of racers) await racer.reported(1);
      const rounds = isDeep ? 200 : 20;
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
