import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { rows, type Tx } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import { queue as queueOf } from "../../../src/stores/queue/queue.ts";
import { rejection, type Backend } from "../backend.ts";
import { expectSound } from "../sound.ts";
import { ann } from "../execution/fixture.ts";
import {
  changed,
  claimed,
  committed,
  finishedTurn,
  onAgents,
  openTurn,
  passDeadline,
  queued,
  say,
  support,
  takenTurn,
  type AgentFixture,
} from "./agents.ts";

export function turnRunsSuite(backend: Backend): void {
  describe("the turns of a session with an agent", () => {
    beginningTests(backend);
    endTests(backend);
    delayTests(backend);
    ownerTests(backend);
    borderTests(backend);
  });
}

async function rowsOf(database: Database): Promise<readonly object[]> {
  return database.read("rows", () =>
    rows(sql`
      SELECT id, agent, open_turn FROM holdfast_session WHERE deleted_at IS NULL
      UNION ALL SELECT id, function, input_hash FROM holdfast_execution`),
  );
}

/** The id of a turn, computed as the documentation says. */
function expectedId(turn: number, generation = 1): string {
  const name = JSON.stringify(["chat", generation, turn]);
  const digest = createHash("sha256").update(`holdfast:turn:1:${name}`).digest("hex");
  return `turn:${digest.slice(0, 26)}`;
}

function beginningTests(backend: Backend): void {
  test(
    "[RN15] begin with work in the queue, once, in the same transaction",
    onAgents(backend, async (fixture) => {
      const { sessions, runs, queue, database } = fixture;
      expect(await sessions.head("chat")).toMatchObject({
        agent: "support",
        turns: 0,
        openTurn: null,
        isStopping: false,
      });
      const enqueue = queue.enqueue.prepare("chat", { items: [{ kind: "message", payload: "a" }] });
      const refused = database.write(
        "refused",
        function* () {
          yield* enqueue();
          throw new Error("refused");
        },
        { isolation: "readCommitted" },
      );
      await expect(refused).rejects.toThrow("refused");
      expect((await runs.list()).items).toEqual([]);
      await say(fixture, "a");
      await say(fixture, "b");
      await say(fixture, "a");
      expect((await runs.list()).items).toMatchObject([
        { id: expectedId(1), function: support, role: "workflow" },
      ]);
      expect(await openTurn(fixture)).toBe(expectedId(1));
      const { locked } = await runs.lockPending({
        holder: ann,
        lease: "1 hour",
        functions: [support],
        limit: 10,
      });
      expect(locked).toMatchObject([{ input: { turn: 1, session: "chat", generation: 1 } }]);
      await expectSound(database);
    }),
  );

  test(
    "[RN15] begin with a command, a wake, and a session that is assigned while work waits",
    onAgents(backend, async (fixture) => {
      const { sessions, queue, processes, runs, clock } = fixture;
      await queue.enqueue("chat", { items: [{ kind: "reset", class: "command", payload: 1 }] });
      expect(await openTurn(fixture)).toBe(expectedId(1));
      await sessions.create("other", { agent: "support" });
      const name = "process.completed";
      await processes.spawn({
        id: "build",
        kind: "workflow",
        wakeTarget: "other",
        eventTypes: [{ name, wake: { input: { kind: "constant", value: "built" } } }],
        execution: { id: "b", function: "ci/build", input: null },
      });
      expect(await sessions.head("other")).toMatchObject({ openTurn: null });
      await runs.cancel("b", { force: true });
      expect(await sessions.head("other")).toMatchObject({ openTurn: null });
      await processes.spawn({
        id: "build-2",
        kind: "workflow",
        wakeTarget: "other",
        eventTypes: [{ name, wake: { input: { kind: "constant", value: "built" } } }],
        execution: { id: "b2", function: "ci/build", input: null },
      });
      await runs.lock("b2", 1, { holder: ann, lease: "1 hour" });
      await runs.finish("b2", 2, { kind: "completed", value: 1 }, { fence: ann });
      expect(await sessions.head("other")).toMatchObject({ turns: 1 });
      expect((await sessions.head("other")).openTurn).toMatch(/^turn:[0-9a-f]{26}$/);
      await sessions.create("plain");
      await queue.enqueue("plain", { items: [{ kind: "message", payload: "kept" }] });
      expect(await sessions.head("plain")).toMatchObject({ agent: null, turns: 0, openTurn: null });
      clock.advance(5);
      expect(await sessions.assign("plain", "support")).toMatchObject({
        agent: "support",
        turns: 1,
        openTurn: expect.stringMatching(/^turn:/),
      });
    }),
  );

  test(
    "[RN15] take the next number when an id is taken, and never go back",
    onAgents(backend, async (fixture) => {
      const { runs, sessions } = fixture;
      await runs.create({ id: "squatter", function: "other" });
      await runs.create({ id: "second", function: "other" });
      await changed(
        fixture,
        sql`UPDATE holdfast_execution SET id = ${expectedId(1)} WHERE id = 'squatter'`,
        sql`UPDATE holdfast_execution SET id = ${expectedId(2)} WHERE id = 'second'`,
      );
      await say(fixture, "a");
      expect(await sessions.head("chat")).toMatchObject({ turns: 3, openTurn: expectedId(3) });
      await sessions.delete("chat");
      await sessions.create("chat", { agent: "support" });
      await say(fixture, "a");
      expect(await sessions.head("chat")).toMatchObject({ turns: 1, openTurn: expectedId(1, 2) });
    }),
  );

  test(
    "[RN15] begin where values go through a codec with a key, and are read there",
    onAgents(backend, async ({ database, sessions, runs }) => {
      const shifted = (text: string, by: number): string =>
        Array.from(text, (each) => String.fromCodePoint((each.codePointAt(0) ?? 0) + by)).join("");
      const payload = {
        name: "shift",
        encode: (text: string) => shifted(text, 1),
        decode: (text: string) => shifted(text, -1),
        hash: (text: string) => createHash("sha256").update(`key ${text}`).digest("hex"),
      };
      await queueOf(database, { payload }).enqueue("chat", {
        items: [{ kind: "message", payload: "secret" }],
      });
      const { openTurn: id } = await sessions.head("chat");
      const sealed = executions(database, { payload });
      const events = await sealed.events(String(id));
      expect(events.items).toMatchObject([
        { event: { kind: "created", input: { turn: 1, session: "chat", generation: 1 } } },
      ]);
      expect(await runs.get(String(id))).toMatchObject({ function: support });
      await expectSound(database, payload);
    }),
  );
}

type End = readonly [
  how: string,
  end: (fixture: AgentFixture, turn: { id: string; version: number }) => Promise<unknown>,
];

const ends: readonly End[] = [
  [
    "its code returns",
    ({ runs }, { id, version }) =>
      runs.finish(id, version, { kind: "completed", value: 1 }, { fence: ann }),
  ],
  [
    "its code throws",
    ({ runs }, { id, version }) =>
      runs.finish(
        id,
        version,
        { kind: "failed", error: { name: "Error", message: "no" } },
        { fence: ann },
      ),
  ],
  ["it is ended by force", ({ runs }, { id }) => runs.cancel(id, { force: true })],
  [
    "its deadline passes",
    async (fixture, { id, version }) => {
      const { runs } = fixture;
      await runs.unlock(id, version, { holder: ann, reason: "waits" });
      await passDeadline(fixture, id);
      await runs.cancel(id, { force: true });
    },
  ],
];

function endTests(backend: Backend): void {
  for (const [how, end] of ends)
    test(
      `[RN15] leave the session able to continue when ${how}`,
      onAgents(backend, async (fixture) => {
        const { sessions, database, clock } = fixture;
        await say(fixture, "a");
        const turn = await takenTurn(fixture);
        clock.advance(1);
        await end(fixture, turn);
        // What the turn was there for is held back: it would fail again and again.
        expect(await sessions.head("chat")).toMatchObject({ openTurn: null, turns: 1 });
        expect(await queued(fixture)).toEqual(["a failed 1 held back"]);
        await say(fixture, "b");
        expect(await openTurn(fixture)).toBe(expectedId(2));
        expect(await queued(fixture)).toEqual(["a failed 1", "b"]);
        await expectSound(database);
      }),
    );

  test(
    "[RN15] end at once when the deadline passes before they begin",
    onAgents(backend, async (fixture) => {
      const { runs, sessions } = fixture;
      await say(fixture, "a");
      const id = await openTurn(fixture);
      await passDeadline(fixture, id);
      expect(await runs.get(id)).toMatchObject({ state: { pending: { resultKind: "timedOut" } } });
      expect(await sessions.head("chat")).toMatchObject({ openTurn: null });
      expect(await queued(fixture)).toEqual(["a failed 1 held back"]);
    }),
  );

  test(
    "[RN15] begin the next one for work that came after the last one began",
    onAgents(backend, async (fixture) => {
      const { sessions } = fixture;
      await say(fixture, "a");
      const { id, version } = await takenTurn(fixture);
      await say(fixture, "b");
      await fixture.runs.finish(id, version, { kind: "completed", value: 1 }, { fence: ann });
      expect(await openTurn(fixture)).toBe(expectedId(2));
      expect(await queued(fixture)).toEqual(["a failed 1 held back", "b"]);
      await finishedTurn(fixture);
      expect(await sessions.head("chat")).toMatchObject({ openTurn: null, turns: 2 });
    }),
  );

  test(
    "[RN15] end in many sessions at once, with other runs between them",
    onAgents(backend, async ({ sessions, queue, runs, database }) => {
      const names = Array.from({ length: 20 }, (_, index) => `many-${index}`);
      for (const name of names) {
        await sessions.create(name, { agent: "support" });
        await queue.enqueue(name, { items: [{ kind: "message", payload: name }] });
        await runs.create({ id: `plain-${name}`, function: "plain" });
      }
      const options = {
        holder: ann,
        lease: "1 hour",
        functions: [support, "plain"],
        limit: 100,
      } as const;
      const { locked } = await runs.lockPending(options);
      expect(locked).toHaveLength(40);
      await Promise.all(
        locked.map(({ id, nextVersion: version, key }) =>
          runs.finish(id, version, { kind: "completed", value: 1 }, { fence: ann, key }),
        ),
      );
      const { items } = await sessions.list({ agent: "support", limit: 100 });
      expect(items.filter(({ openTurn: open }) => open !== null)).toEqual([]);
      expect(items).toHaveLength(21);
      await expectSound(database);
    }),
  );

  test(
    "[RN15] stay open while their run is parked or paused",
    onAgents(backend, async (fixture) => {
      const { runs } = fixture;
      await say(fixture, "a");
      const id = await openTurn(fixture);
      await runs.pause(id);
      await say(fixture, "b");
      expect(await openTurn(fixture)).toBe(id);
      await runs.cancel(id, { force: true });
      expect(await openTurn(fixture)).toBe(expectedId(2));
      expect(await queued(fixture)).toEqual(["a failed 1 held back", "b"]);
    }),
  );

  test(
    "[RN15] may be removed and erased once they have ended",
    onAgents(backend, async (fixture) => {
      const { runs, sessions, clock, database } = fixture;
      await say(fixture, "a");
      expect(await rejection(runs.erase(await openTurn(fixture)))).toMatchObject({
        code: "EXECUTION_UNFINISHED",
      });
      const first = await finishedTurn(fixture);
      await runs.erase(first);
      await say(fixture, "b");
      const second = await finishedTurn(fixture);
      clock.advance(10);
      await runs.removeFinished({ olderThan: 1 });
      expect((await runs.list()).items.map(({ id }) => id)).not.toContain(second);
      await say(fixture, "c");
      expect(await sessions.head("chat")).toMatchObject({ turns: 3, openTurn: expectedId(3) });
      await expectSound(database);
    }),
  );
}

function delayTests(backend: Backend): void {
  test(
    "[RN15] begin when delayed work is due, and at once for work that comes before it",
    onAgents(backend, async (fixture) => {
      const { runs, clock, sessions, database } = fixture;
      await say(fixture, "later", { availableAt: 5_000 });
      const delayed = await openTurn(fixture);
      const options = { holder: ann, lease: "1 hour", functions: [support], limit: 10 } as const;
      expect((await runs.lockPending(options)).locked).toEqual([]);
      await say(fixture, "now");
      expect(await openTurn(fixture)).toBe(expectedId(2));
      // One that is due later still does not replace the one that is due first.
      await say(fixture, "never", { availableAt: 9_000 });
      expect(await finishedTurn(fixture)).toBe(expectedId(2));
      expect(await openTurn(fixture)).toBe(expectedId(3));
      expect((await runs.lockPending(options)).locked).toEqual([]);
      clock.advance(4_000);
      const due = await runs.lockPending(options);
      expect(due.locked.map(({ id }) => id).toSorted()).toEqual(
        [delayed, expectedId(3)].toSorted(),
      );
      // The turn that was replaced ends without a trace.
      const late = due.locked.find(({ id }) => id === delayed);
      await runs.finish(
        delayed,
        late?.nextVersion ?? 0,
        { kind: "completed", value: 1 },
        { fence: ann },
      );
      expect(await sessions.head("chat")).toMatchObject({ openTurn: expectedId(3), turns: 3 });
      await expectSound(database);
    }),
  );

  test(
    "[RN15] are not replaced once they may have begun, by work that was prepared before",
    onAgents(backend, async (fixture) => {
      const { queue, clock, database } = fixture;
      const prepared = (text: string): (() => Tx<unknown>) =>
        queue.enqueue.prepare("chat", { items: [{ kind: "message", payload: text }] });
      const sent = (enqueue: () => Tx<unknown>): Promise<unknown> =>
        database.write("sent", enqueue, { isolation: "readCommitted" });
      const early = prepared("early");
      const earlier = prepared("earlier");
      clock.advance(10);
      await say(fixture, "now");
      const turn = await takenTurn(fixture);
      const work = await claimed(fixture, turn);
      await sent(early);
      expect(await openTurn(fixture)).toBe(turn.id);
      expect(await queued(fixture)).toEqual(["now claimed", "early"]);
      const draft = { claims: work === undefined ? [] : [work.ref], release: true };
      await committed(fixture, turn, { turn: "t", ...draft });
      await queue.cancel("chat", (await queue.list("chat")).items[0]?.id ?? "");
      await finishedTurn(fixture);
      await say(fixture, "later", { availableAt: clock.now() + 5_000 });
      const delayed = await openTurn(fixture);
      clock.advance(5_000);
      expect((await takenTurn(fixture)).id).toBe(delayed);
      await sent(earlier);
      expect(await openTurn(fixture)).toBe(delayed);
      await expectSound(database);
    }),
  );
}

function ownerTests(backend: Backend): void {
  test(
    "[RN15] follow the agent of the session, by whom sessions are listed",
    onAgents(backend, async (fixture) => {
      const { sessions, runs } = fixture;
      await say(fixture, "a");
      const { id, version } = await takenTurn(fixture);
      await sessions.assign("chat", "billing/eu");
      await say(fixture, "b");
      await runs.finish(id, version, { kind: "completed", value: 1 }, { fence: ann });
      expect(await runs.get(await openTurn(fixture))).toMatchObject({
        function: "agent/billing/eu",
      });
      expect((await sessions.list({ agent: "support" })).items).toEqual([]);
      expect((await sessions.list({ agent: "billing/eu" })).items).toMatchObject([
        { id: "chat", turns: 2 },
      ]);
      await sessions.assign("chat", null);
      await runs.cancel(await openTurn(fixture), { force: true });
      expect(await sessions.lock("chat")).toMatchObject({ agent: null, openTurn: null, turns: 2 });
      await say(fixture, "c");
      expect(await sessions.lock("chat")).toMatchObject({ openTurn: null, turns: 2 });
    }),
  );

  test(
    "[RN15] stay with their session when it is forked or deleted",
    onAgents(backend, async (fixture) => {
      const { sessions, queue, runs, leases, database } = fixture;
      const outcome = await leases.acquire(
        "chat",
        { owner: "o", incarnation: "i" },
        { lease: "1 hour" },
      );
      if (outcome.kind !== "acquired") throw new Error("The lease is not free.");
      const handle = { id: "chat" as never, generation: 1 };
      await sessions.commit(handle, {
        turn: "t",
        fence: outcome.lease,
        release: true,
        nodes: [{ kind: "message", payload: 1 }],
      });
      await say(fixture, "a");
      const turn = await takenTurn(fixture);
      await sessions.fork("chat", "branch");
      expect(await sessions.head("branch")).toMatchObject({
        agent: "support",
        turns: 0,
        openTurn: null,
      });
      await sessions.fork("chat", "mine", { meta: { agent: null } });
      expect(await sessions.head("mine")).toMatchObject({ agent: null });
      await sessions.delete("chat");
      await runs.finish(turn.id, turn.version + 1, { kind: "completed", value: 1 }, { fence: ann });
      await sessions.create("chat", { agent: "support" });
      expect(await sessions.head("chat")).toMatchObject({
        generation: 2,
        openTurn: null,
        turns: 0,
      });
      expect((await queue.list("chat")).items).toEqual([]);
      await expectSound(database);
    }),
  );
}

function borderTests(backend: Backend): void {
  test(
    "[RN15] belong to the queue: nobody else starts them, and no other agent has such a name",
    onAgents(backend, async (fixture) => {
      const { runs, sessions, database } = fixture;
      const before = await rowsOf(database);
      for (const draft of [
        { id: "turn:1", function: "plain" },
        { id: expectedId(1), function: "plain" },
        { function: support },
        { id: "fine", function: "agent/" },
      ])
        expect(await rejection(runs.create(draft))).toMatchObject({
          name: "HoldfastError",
          code: expect.stringMatching(/^(ID_MALFORMED|NAME_INVALID)$/),
        });
      for (const agent of [
        "",
        " ",
        "a b",
        "a.b",
        "ü",
        "x".repeat(123),
        7,
        {},
        [],
        true,
        "a\0b",
      ] as never[]) {
        expect(await rejection(sessions.create("hostile", { agent }))).toMatchObject({
          code: "NAME_INVALID",
        });
        expect(await rejection(sessions.assign("chat", agent))).toMatchObject({
          code: "NAME_INVALID",
        });
        expect(await rejection(sessions.list({ agent }))).toMatchObject({ code: "NAME_INVALID" });
      }
      expect(await rejection(sessions.assign("chat", undefined as never))).toMatchObject({
        code: "NAME_INVALID",
      });
      expect(await rejection(sessions.assign("nobody", "a"))).toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
      await sessions.create("longest", { agent: "x".repeat(122) });
      await sessions.erase("longest");
      expect(await rowsOf(database)).toEqual(before);
    }),
  );

  test(
    "[RN15] are neither retried nor the ids of copies",
    onAgents(backend, async (fixture) => {
      const { runs, queue, database } = fixture;
      await runs.create({ id: "plain", function: "plain" });
      await runs.cancel("plain", { force: true });
      const before = await rowsOf(database);
      for (const copied of [
        runs.retry("plain", { id: "turn:1" }),
        runs.fork("plain", 0, { id: expectedId(1) }),
      ])
        expect(await rejection(copied)).toMatchObject({ code: "ID_MALFORMED" });
      expect(await rowsOf(database)).toEqual(before);
      await say(fixture, "a");
      const turn = await openTurn(fixture);
      await runs.cancel(turn, { force: true });
      expect(await rejection(runs.retry(turn))).toMatchObject({
        code: "FORK_POINT_INVALID",
        message: expect.stringContaining('queue.retry("chat")'),
        details: { id: turn, session: "chat" },
      });
      expect(await queue.retry("chat")).toBe(1);
      expect(await openTurn(fixture)).toBe(expectedId(2));
      await expectSound(database);
    }),
  );
}
