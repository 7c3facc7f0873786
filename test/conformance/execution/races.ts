import { expect, test } from "vitest";
import { delayId } from "../../../src/model/ids/delay-id.ts";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { childId } from "../../../src/model/ids/execution-id.ts";
import type { ExecutionId } from "../../../src/model/ids/execution-id.ts";
import type { FunctionName } from "../../../src/model/ids/function-name.ts";
import { idSource } from "../../../src/model/ids/id-source.ts";
import { namedJoinSet } from "../../../src/model/ids/join-set-id.ts";
import { rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import { isDeep } from "../../depth.ts";
import type { Answer, Command, Contender } from "./contender.ts";
import { faultsIn } from "./faults.ts";
import { readTables } from "./tables.ts";

/** A database, and four who have it open each for itself. */
export interface Arena {
  readonly database: Database;
  readonly contenders: readonly Contender[];
}

const rounds = isDeep ? 300 : 15;
const joinSet = namedJoinSet("race");
const aDayMs = 86_400_000;

/** Asks the first two at the same time, each first in every other round. */
async function both(
  { contenders }: Arena,
  round: number,
  commands: readonly [Command, Command],
): Promise<readonly [Answer, Answer]> {
  const [a, b] = contenders;
  if (a === undefined || b === undefined) throw new Error("It takes two.");
  if (round % 2 === 0) return Promise.all([a.ask(commands[0]), b.ask(commands[1])]);
  const second = b.ask(commands[1]);
  return [await a.ask(commands[0]), await second];
}

/** A parent with a locked activity, which nobody retries, and a delay. */
async function family(
  database: Database,
  name: string,
): Promise<{ readonly parent: ExecutionId; readonly child: ExecutionId }> {
  const store = executions(database);
  const ids = idSource(database);
  const { id: parent } = await store.create({
    id: name,
    function: "race/parent",
  });
  const child = childId(parent, joinSet, 1);
  const history = { call: 1, seen: 0, joinSet };
  const requests: readonly GivenEvent[] = [
    {
      ...history,
      kind: "childRequested",
      child,
      function: "race/child" as FunctionName,
    },
    {
      ...history,
      kind: "delayRequested",
      delay: delayId(parent, joinSet, 1),
      expiresAt: database.clock.now() + aDayMs,
      startAt: { in: "1d" },
    },
  ];
  await store.append(parent, 1, requests, {
    children: [{ id: child, function: "race/child", role: "activity" }],
  });
  await store.lock(child, 1, {
    holder: { executor: ids.nextId("Exr"), run: ids.nextId("Run") },
    lease: "1h",
    retry: { maxRetries: 0, backoffMs: 1, backoffMaxMs: 1 },
  });
  return { parent, child };
}

/** What the parent was told, and by how many events the child ended. */
function told(
  database: Database,
  { parent, child }: Awaited<ReturnType<typeof family>>,
): Promise<{ readonly responses: readonly string[]; readonly ends: number }> {
  return database.read("told", function* () {
    const responses = yield* rows<{ source: string; outcome: string }>(sql`
      SELECT r.source, r.outcome FROM holdfast_execution_response r
        JOIN holdfast_execution x ON x.key = r.execution
      WHERE x.id = ${parent} ORDER BY r.seq`);
    const ends = yield* rows(sql`
      SELECT e.version FROM holdfast_execution_event e
        JOIN holdfast_execution x ON x.key = e.execution
      WHERE x.id = ${child} AND e.kind = 'finished'`);
    return {
      responses: responses.map(({ source, outcome }) => `${source} ${outcome}`),
      ends: ends.length,
    };
  });
}

/** What must hold however calls of several processes or servers meet. */
export function executionRaces(arena: () => Arena): void {
  test("a queue of 1,000 is locked by two at once, each execution once", async () => {
    const { database, contenders } = arena();
    const store = executions(database);
    const expected = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) =>
        store.create({ id: `queue-${index}`, function: "race/queue" }).then(({ id }) => id),
      ),
    );
    const command = {
      do: "drain",
      functions: ["race/queue"],
      limit: 7,
    } as const;
    const answers = await Promise.all(contenders.slice(0, 2).map((one) => one.ask(command)));
    const locked = answers.flatMap(({ value }) => value as readonly string[]);
    expect(locked.toSorted()).toEqual(expected.toSorted());
    const tables = await readTables(database);
    expect(
      tables.executions
        .filter(({ function: name }) => name === "race/queue")
        .filter(({ state, version }) => state !== "locked" || version !== 1),
    ).toEqual([]);
    expect(faultsIn(tables)).toEqual([]);
  });

  test(`of two who end one child one wins, over ${rounds} rounds`, async () => {
    const { database } = arena();
    for (let round = 0; round < rounds; round += 1) {
      const names = await family(database, `twins-${round}`);
      const finish = { do: "finish", id: names.child, version: 2 } as const;
      const answers = await both(arena(), round, [finish, finish]);
      expect(answers.map(({ code }) => code ?? "won").toSorted()).toEqual([
        "EXECUTION_FINISHED",
        "won",
      ]);
      expect(await told(database, names)).toEqual({
        responses: [`${names.child} completed`],
        ends: 1,
      });
    }
    expect(faultsIn(await readTables(database))).toEqual([]);
  });

  test(`a lock's expiry and the result of its holder: one counts, over ${rounds} rounds`, async () => {
    const { database } = arena();
    for (let round = 0; round < rounds; round += 1) {
      const names = await family(database, `late-${round}`);
      const { child: id } = names;
      const at = database.clock.now() + aDayMs;
      const [finished, expired] = await both(arena(), round, [
        { do: "finish", id, version: 2 },
        { do: "expireLock", id, at },
      ]);
      const isInTime = finished.code === undefined;
      expect(finished.code).toBe(isInTime ? undefined : "EXECUTION_FINISHED");
      expect(expired.value).toMatchObject({ outcome: isInTime ? "notExpired" : "expired" });
      expect(await told(database, names)).toEqual({
        responses: [`${id} ${isInTime ? "completed" : "timedOut"}`],
        ends: 1,
      });
    }
    expect(faultsIn(await readTables(database))).toEqual([]);
  });

  test(`a delay's expiry and its cancellation: one response, over ${rounds} rounds`, async () => {
    const { database } = arena();
    for (let round = 0; round < rounds; round += 1) {
      const names = await family(database, `delay-${round}`);
      const delay = delayId(names.parent, joinSet, 1);
      const answers = await both(arena(), round, [
        { do: "cancelDelay", delay },
        { do: "expireDelay", delay },
      ]);
      const isCancelled = answers[0].value === "answered";
      expect(answers.map(({ value }) => value)).toEqual(
        isCancelled ? ["answered", "alreadyCancelled"] : ["alreadyExpired", "answered"],
      );
      expect((await told(database, names)).responses).toEqual([
        `${delay} ${isCancelled ? "cancelled" : "expired"}`,
      ]);
    }
    expect(faultsIn(await readTables(database))).toEqual([]);
  });

  test(`four lockers at once keep to the limits, over ${rounds} rounds`, async () => {
    const { database, contenders } = arena();
    const store = executions(database);
    await Promise.all(
      Array.from({ length: 3 * rounds + 3 }, (_, index) =>
        store.create({
          id: `limited-${index}`,
          function: "race/limited",
          // Due in this order, so that each round finds one of the key in front.
          startAt: { at: 1_000 + index },
          ...(index % 3 === 0 && { concurrencyKey: "one at a time" }),
        }),
      ),
    );
    const name = "race/limited";
    for (let round = 0; round < rounds; round += 1) {
      const answers = await Promise.all(
        contenders.map((one) =>
          one.ask({
            do: "lockPending",
            functions: [{ name, concurrencyMax: 3, perKeyMax: 1 }],
            limit: 2,
          }),
        ),
      );
      const locked = answers.flatMap(({ value }) => value as readonly string[]);
      const ofKey = locked.filter((id) => Number(id.slice(8)) % 3 === 0);
      expect([locked.length, ofKey.length]).toEqual([3, 1]);
      await Promise.all(
        locked.map((id) => store.finish(id, 2, { kind: "completed", value: null })),
      );
    }
    expect(faultsIn(await readTables(database))).toEqual([]);
  });
}
