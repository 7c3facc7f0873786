import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { delayId } from "../../../src/model/ids/delay-id.ts";
import { childId, parseExecutionId } from "../../../src/model/ids/execution-id.ts";
import { namedJoinSet } from "../../../src/model/ids/join-set-id.ts";
import { answerDelay } from "../../fixtures/execution-operations.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { faultsIn } from "./faults.ts";
import { readTables } from "./tables.ts";

const joinSet = namedJoinSet("kids");

export function executionAnswersSuite(backend: Backend): void {
  describe("answers to an execution", () => {
    test("a signal cannot stand in for the end of a child, whatever the ids and keys", () =>
      withDatabase(backend, async (database) => {
        const store = executions(database);
        const { id } = await store.create({ id: "s:go:a", function: "parent" });
        const child = childId(id, joinSet, 1);
        await store.create({ id: child, function: "child", role: "activity" });
        await store.signal(id, "go", 1, { key: `a.${joinSet}_1` });
        await store.cancelActivity(child);
        const tables = await readTables(database);
        expect(tables.responses.map(({ kind }) => kind)).toEqual(["signal", "child"]);
        expect(faultsIn(tables)).toEqual([]);
      }));

    test("a paused delay does not expire, also for a timer that read it before", () =>
      withDatabase(backend, async (database) => {
        const clock = manualClock(1_000);
        const store = executions(database, { clock });
        const id = parseExecutionId("sleeper");
        const delay = delayId(id, joinSet, 1);
        await store.create({ id, function: "parent" });
        await store.append(id, 1, [
          {
            kind: "delayRequested",
            call: 1,
            seen: 0,
            joinSet,
            delay,
            expiresAt: 2_000,
            startAt: { in: 1_000 },
          },
        ]);
        await store.pauseDelay(delay);
        const expire = () =>
          database.write(answerDelay, {
            delay,
            at: 2_000,
            outcome: "expired",
          });
        expect(await expire()).toBe("notExpired");
        expect((await readTables(database)).responses).toEqual([]);
        await store.unpauseDelay(delay);
        expect(await expire()).toBe("answered");
        expect(await rejection(store.pauseDelay(delay))).toMatchObject({
          code: "DELAY_NOT_FOUND",
        });
      }));
  });
}
