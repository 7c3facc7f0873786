import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { awaitEvents } from "../../src/stores/effect/await/await-events.ts";
import type { Database } from "../../src/sql/database.ts";
import { executions } from "../../src/stores/execution/executions.ts";
import { processes } from "../../src/stores/process/processes.ts";
import { triggers } from "../../src/stores/trigger/triggers.ts";
import { consumedWakes, executedAfter, workedAfter } from "./outcomes.ts";
import { scope } from "./actions/effects.ts";
import { found, foundWhole } from "./kill-matrix.ts";
import type { KillFixture } from "./kill-matrix.ts";

/** Kills processes at every statement of what is one transaction, or a few, and looks at what they leave. */
export function killSuite(
  prepared: () => Promise<KillFixture & { readonly dispose: () => Promise<void> }>,
): void {
  let fixture: Awaited<ReturnType<typeof prepared>>;
  beforeAll(async () => {
    fixture = await prepared();
  });
  afterAll(() => fixture.dispose());
  registryKills(() => fixture);
  otherKills(() => fixture);
  stepwiseKills(() => fixture);
}

/** Both were found, and nothing in between. */
const entirely = ["new", "old"];

function registryKills(fixture: () => KillFixture): void {
  describe("killed at every statement, there entirely or not at all, and repeated is", () => {
    test("[A59] an event with its wake", async () => {
      const answers = { old: { isReplay: false }, new: { isReplay: true } };
      const states = await foundWhole(fixture(), "append", answers, (left) => hasWoken(left, 1));
      expect(states).toEqual(entirely);
    });

    test("[AX10] an execution with its process and its handle", async () => {
      const answers = { old: { existed: false }, new: { existed: true } };
      const states = await foundWhole(fixture(), "spawn", answers, async (left) => {
        expect(await processes(left).hasHandle("build", "chat")).toBe(true);
        expect((await executions(left).get("build")).id).toBe("build");
        await hasWoken(left, 0);
      });
      expect(states).toEqual(entirely);
    });

    test("the end of an execution from outside, with its process and its wake", async () => {
      const answers = {
        old: { kind: "accepted" },
        new: { kind: "replayed" },
      };
      const states = await foundWhole(fixture(), "resolve", answers, (left) =>
        hasEnded(left, "run"),
      );
      expect(states).toEqual(entirely);
    });

    test("[RN7] the answer to a question, with the response to the run that asks", async () => {
      const answers = { old: { kind: "accepted" }, new: { kind: "replayed" } };
      const states = await foundWhole(fixture(), "ask", answers, async (left) => {
        const { items } = await executions(left).responses("asks");
        expect(items).toMatchObject([
          { seq: 1, response: { result: { kind: "completed", value: { approve: true } } } },
        ]);
        expect((await executions(left).questions({ run: "asks" })).items).toEqual([]);
      });
      expect(states).toEqual(entirely);
    });

    test("the end of an execution by its worker, with its process and its wake", async () => {
      const answer = { nextVersion: 2 };
      const answers = { old: answer, new: answer };
      const states = await foundWhole(fixture(), "finish", answers, (left) =>
        hasEnded(left, "job"),
      );
      expect(states).toEqual(entirely);
    });

    test("[AX10] a process that is started as an effect, with its handle and the record of it", async () => {
      const answer = { id: "build", existed: false };
      const answers = { old: answer, new: answer };
      const states = await foundWhole(fixture(), "start", answers, async (left) => {
        expect(await processes(left).hasHandle("build", "chat")).toBe(true);
      });
      expect(states).toEqual(entirely);
    });
  });
}

function otherKills(fixture: () => KillFixture): void {
  describe("killed at every statement, there entirely or not at all, and repeated is", () => {
    test("[AX9] an occurrence with its deliveries and one process for each", async () => {
      const answers = {
        old: { kind: "recorded", deliveries: [{}, {}] },
        new: { kind: "replayed", deliveries: [{}, {}] },
      };
      const states = await foundWhole(fixture(), "record", answers, (left) => hasToDo(left, 2));
      expect(states).toEqual(entirely);
    });

    test("[AX9] an instant of a schedule with the process that it starts", async () => {
      const answers = { old: { fired: [2_000] }, new: { fired: [] } };
      const states = await foundWhole(fixture(), "fire", answers, (left) => hasToDo(left, 1));
      expect(states).toEqual(entirely);
    });

    test("[A82] an answer from outside", async () => {
      const answers = { old: { kind: "accepted" }, new: { kind: "replayed" } };
      const states = await foundWhole(fixture(), "answer", answers, isAnswered);
      expect(states).toEqual(entirely);
    });

    test("[AX21] a turn", async () => {
      const turn = { revision: 2, leaf: "own" };
      const answers = {
        old: { ...turn, kind: "committed" },
        new: { ...turn, kind: "replayed" },
      };
      const states = await foundWhole(fixture(), "commit", answers, (left) => hasWoken(left, 0));
      expect(states).toEqual(entirely);
    });
  });
}

function stepwiseKills(fixture: () => KillFixture): void {
  describe("killed at every statement of several transactions", () => {
    test("[A76] an effect has run at least once, and what is recorded is returned for ever", async () => {
      expect(await found(fixture(), "execute", 2, executedAfter)).toEqual([
        "absent",
        "completed",
        "inProgress",
      ]);
    });

    test("[A72] [A73] a worker's process is finished by another one, and each of its events wakes once", async () => {
      expect(await found(fixture(), "work", 4, workedAfter)).toEqual([
        "claimed",
        "ended",
        "free",
        "reported",
        "started",
      ]);
    });
  });
}

async function hasWoken(database: Database, times: number): Promise<void> {
  expect(await consumedWakes(database)).toBe(times);
}

async function hasEnded(database: Database, id: string): Promise<void> {
  const record = await processes(database).get(id);
  expect(record?.status).toBe("completed");
  await hasWoken(database, 1);
}

/** What an occurrence has started is what a worker finds that looks for work, beside what was there before. */
async function hasToDo(database: Database, count: number): Promise<void> {
  const { items } = await triggers(database).unstarted();
  const started = items.map(({ process }) => process);
  expect(new Set(started).size).toBe(count);
  const sweep = await processes(database).worklist({ started: false });
  expect(sweep.items.map(({ process }) => process.id).toSorted()).toEqual(
    [...started, "p"].toSorted(),
  );
}

async function isAnswered(database: Database): Promise<void> {
  expect(await awaitEvents(database).wait(scope, "b")).toEqual({
    kind: "resolved",
    value: { from: "outside" },
  });
}
