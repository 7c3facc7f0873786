import { describe, expect, test } from "vitest";
import { sql } from "../../../src/sql/statement.ts";
import { rejection, type Backend } from "../backend.ts";
import { pastChecks } from "../past-checks.ts";
import { annLater, ann } from "../execution/fixture.ts";
import { expectSound } from "../sound.ts";
import {
  changed,
  claimed,
  committed,
  inTurn,
  onAgents,
  openTurn,
  queued,
  say,
  support,
  takenTurn,
  textsOf,
} from "./agents.ts";

const handle = { id: "chat" as never, generation: 1 };
const reply = [{ kind: "message", role: "assistant", payload: "done" }];

export function turnClaimsSuite(backend: Backend): void {
  describe("the claims and commits of a turn", () => {
    claimTests(backend);
    fenceTests(backend);
    returnTests(backend);
    damageTests(backend);
    borderTests(backend);
  });
}

function claimTests(backend: Backend): void {
  test(
    "[RN16] have the same work when they are asked for again, though more has arrived",
    onAgents(backend, async (fixture) => {
      await say(fixture, "a");
      await say(fixture, "b");
      const turn = await takenTurn(fixture);
      const work = await claimed(fixture, turn);
      expect(textsOf(work?.batches)).toEqual(["a", "b"]);
      expect(work?.setAside).toEqual([]);
      await say(fixture, "c");
      await say(fixture, "d");
      expect(await claimed(fixture, turn)).toEqual(work);
      expect(await queued(fixture)).toEqual(["a claimed", "b claimed", "c", "d"]);
      const joined = await claimed(fixture, turn, {
        boundary: "activeTurn",
        key: "step 1",
        limit: 1,
      });
      expect(textsOf(joined?.batches)).toEqual(["c"]);
      expect(await claimed(fixture, turn, { boundary: "activeTurn", key: "step 1" })).toEqual(
        joined,
      );
      expect(textsOf((await claimed(fixture, turn, { boundary: "activeTurn" }))?.batches)).toEqual([
        "d",
      ]);
      expect(await claimed(fixture, turn, { key: "another", limit: 0 })).toBeUndefined();
      expect(await claimed(fixture, turn, { key: "another" })).toBeUndefined();
      await expectSound(fixture.database);
    }),
  );

  test(
    "[RN16] take a command by itself, and nothing that must wait for the end of the turn",
    onAgents(backend, async (fixture) => {
      const { queue } = fixture;
      await queue.enqueue("chat", {
        items: [{ kind: "reset", class: "command", payload: "first" }],
      });
      await say(fixture, "after", { delivery: "afterTurnCommit" });
      const turn = await takenTurn(fixture);
      expect(textsOf((await claimed(fixture, turn))?.batches)).toEqual(["first"]);
      const active = { boundary: "activeTurn", key: "k" } as const;
      expect(await claimed(fixture, turn, active)).toBeUndefined();
      expect(textsOf((await claimed(fixture, turn, { key: "idle again" }))?.batches)).toEqual([
        "after",
      ]);
    }),
  );

  test(
    "[RN16] are consumed by the commit, which gives the turn up and begins the next",
    onAgents(backend, async (fixture) => {
      const { sessions, runs } = fixture;
      await say(fixture, "a");
      const turn = await takenTurn(fixture);
      const work = await claimed(fixture, turn);
      await say(fixture, "b");
      const draft = { turn: turn.id, claims: [work?.ref ?? never()], nodes: reply };
      expect(await committed(fixture, turn, { ...draft, release: true })).toMatchObject({
        kind: "committed",
        revision: 1,
      });
      const next = await openTurn(fixture);
      expect(next).not.toBe(turn.id);
      expect(await sessions.head("chat")).toMatchObject({ turns: 2 });
      expect(await queued(fixture)).toEqual(["b"]);
      // Asked again, it answers as before, also behind the turn.
      expect(await committed(fixture, turn, draft)).toMatchObject({
        kind: "replayed",
        revision: 1,
      });
      await runs.finish(turn.id, turn.version, { kind: "completed", value: 1 }, { fence: ann });
      expect(await openTurn(fixture)).toBe(next);
      expect(await queued(fixture)).toEqual(["b"]);
      const last = await takenTurn(fixture);
      const rest = await claimed(fixture, last);
      await committed(fixture, last, {
        turn: last.id,
        claims: [rest?.ref ?? never()],
        release: true,
      });
      expect(await sessions.head("chat")).toMatchObject({ openTurn: null, revision: 2 });
      await expectSound(fixture.database);
    }),
  );

  test(
    "[RN16] of passes keep the turn open until the last one gives it up",
    onAgents(backend, async (fixture) => {
      const { runs } = fixture;
      await say(fixture, "a", { slot: "exclusive" });
      await say(fixture, "b", { slot: "exclusive" });
      const turn = await takenTurn(fixture);
      const work = await claimed(fixture, turn);
      await committed(fixture, turn, {
        turn: `${turn.id}/0`,
        claims: [work?.ref ?? never()],
        nodes: reply,
      });
      expect(await openTurn(fixture)).toBe(turn.id);
      // What it had not claimed waits unmarked: the turn has done its part.
      await runs.cancel(turn.id, { force: true });
      expect(await queued(fixture)).toEqual(["b"]);
      expect(await openTurn(fixture)).not.toBe(turn.id);
    }),
  );
}

function fenceTests(backend: Backend): void {
  test(
    "[RN16] belong to the run of the open turn alone",
    onAgents(backend, async (fixture) => {
      const { queue, sessions, runs, leases, database } = fixture;
      await say(fixture, "a");
      const turn = await takenTurn(fixture);
      await runs.create({ id: "other", function: "plain" });
      await runs.lock("other", 1, { holder: ann, lease: "1 hour" });
      const other = { id: "other", version: 2 };
      const lost = (reason: string): object => ({
        code: "LEASE_LOST",
        details: { session: "chat", reason },
      });
      expect(await rejection(queue.claimFor("chat"))).toMatchObject(lost("missing"));
      expect(await rejection(sessions.commit(handle, { turn: "t", nodes: reply }))).toMatchObject(
        lost("missing"),
      );
      expect(await rejection(claimed(fixture, other))).toMatchObject(lost("closed"));
      const draft = { turn: "t", nodes: reply };
      expect(await rejection(committed(fixture, other, draft))).toMatchObject(lost("closed"));
      const outcome = await leases.acquire(
        "chat",
        { owner: "o", incarnation: "i" },
        { lease: "1 hour" },
      );
      if (outcome.kind !== "acquired") throw new Error("The lease is not free.");
      expect(await rejection(claimed(fixture, turn))).toMatchObject(lost("leased"));
      expect(await rejection(committed(fixture, turn, draft))).toMatchObject(lost("leased"));
      await leases.release(outcome.lease);
      const work = await claimed(fixture, turn);
      const again = await leases.acquire(
        "chat",
        { owner: "o", incarnation: "i" },
        { lease: "1 hour" },
      );
      if (again.kind !== "acquired") throw new Error("The lease is not free.");
      // The holder of the lease gets nothing of it, and cannot consume or release it.
      expect(await queue.claimTurn(again.lease)).toBeUndefined();
      expect(await queue.abandon("chat", work?.ref ?? never())).toBe(0);
      expect(
        await rejection(
          sessions.commit(handle, {
            turn: "t",
            fence: again.lease,
            claims: [work?.ref ?? never()],
          }),
        ),
      ).toMatchObject({ code: "CLAIM_LOST" });
      expect(await queue.cancel("chat", work?.ref.batches[0] ?? "")).toBeUndefined();
      expect(await queued(fixture)).toEqual(["a claimed"]);
      await expectSound(database);
    }),
  );

  test(
    "[RN16] are refused for good once the turn is closed, and to a worker without its lock",
    onAgents(backend, async (fixture) => {
      const { runs, clock, database } = fixture;
      await say(fixture, "a");
      const turn = await takenTurn(fixture);
      const work = await claimed(fixture, turn);
      const ended = { ...turn };
      clock.advance(4_000_000);
      await runs.expireTimers();
      clock.advance(100_000);
      const options = { lease: "1 hour", functions: [support], limit: 1 } as const;
      const { locked } = await runs.lockPending({ holder: annLater, ...options });
      expect(locked.map(({ id }) => id)).toEqual([turn.id]);
      const draft = { turn: "late", claims: [work?.ref ?? never()], nodes: reply };
      // The worker that lost the lock commits nothing: the next one continues the same turn.
      expect(await rejection(committed(fixture, ended, draft))).toMatchObject({
        code: expect.stringMatching(/^(LOCK_LOST|VERSION_CONFLICT)$/),
      });
      expect(await queued(fixture)).toEqual(["a claimed"]);
      await runs.cancel(turn.id, { force: true });
      await say(fixture, "b");
      const next = await takenTurn(fixture);
      expect(textsOf((await claimed(fixture, next))?.batches)).toEqual(["a", "b"]);
      expect(await rejection(committed(fixture, next, draft))).toMatchObject({
        code: "CLAIM_LOST",
      });
      await expectSound(database);
    }),
  );

  test(
    "[RN16] of a turn that another clock has begun too early are not valid once it is replaced",
    onAgents(backend, async (fixture) => {
      await say(fixture, "later", { availableAt: 5_000 });
      const id = await openTurn(fixture);
      await changed(
        fixture,
        sql`UPDATE holdfast_queue_batch SET available_at = 1`,
        sql`UPDATE holdfast_execution SET due_at = 1, scheduled_at = 1`,
      );
      const early = await takenTurn(fixture);
      expect(textsOf((await claimed(fixture, early))?.batches)).toEqual(["later"]);
      await say(fixture, "now");
      expect(await openTurn(fixture)).not.toBe(id);
      expect(await queued(fixture)).toEqual(["later", "now"]);
      const draft = { turn: "early", nodes: reply };
      expect(await rejection(committed(fixture, early, draft))).toMatchObject({
        code: "LEASE_LOST",
      });
      await expectSound(fixture.database);
    }),
  );
}

function returnTests(backend: Backend): void {
  test(
    "[RN16] return marked when the run ends without a commit, and no turn begins for them",
    onAgents(backend, async (fixture) => {
      const { sessions, runs, queue } = fixture;
      await say(fixture, "a");
      for (let failed = 1; failed <= 3; failed += 1) {
        const turn = await takenTurn(fixture);
        expect(textsOf((await claimed(fixture, turn))?.batches)).toContain("a");
        if (failed === 3) break;
        await runs.cancel(turn.id, { force: true });
        expect(await queued(fixture)).toContain(`a failed ${failed} held back`);
        expect(await sessions.head("chat")).toMatchObject({ openTurn: null });
        expect(await queue.retry("chat")).toBe(1);
      }
      const third = await openTurn(fixture);
      await runs.cancel(third, { force: true });
      // After three turns it is set aside: neither a retry nor another message gives it to a turn.
      expect(await queue.retry("chat")).toBe(0);
      expect(await sessions.head("chat")).toMatchObject({ openTurn: null, turns: 3 });
      await say(fixture, "b");
      const turn = await takenTurn(fixture);
      const work = await claimed(fixture, turn);
      expect(textsOf(work?.batches)).toEqual(["b"]);
      expect(textsOf(work?.setAside)).toEqual(["a"]);
      expect(work?.ref.batches).toHaveLength(2);
      await committed(fixture, turn, { turn: "t", claims: [work?.ref ?? never()], release: true });
      expect(await queued(fixture)).toEqual([]);
      expect(await sessions.head("chat")).toMatchObject({ openTurn: null });
      await expectSound(fixture.database);
    }),
  );

  test(
    "[RN16] are taken along by a message, but not by a wake or a command",
    onAgents(backend, async (fixture) => {
      const { runs, queue } = fixture;
      await say(fixture, "a");
      const first = await takenTurn(fixture);
      await claimed(fixture, first);
      await runs.cancel(first.id, { force: true });
      await queue.enqueue("chat", {
        items: [{ kind: "process.wake", payload: "woken" }],
        source: { process: "p", sequence: 1 },
      });
      const woken = await takenTurn(fixture);
      const work = await claimed(fixture, woken);
      expect(textsOf(work?.batches)).toEqual(["woken"]);
      await committed(fixture, woken, { turn: "w", claims: [work?.ref ?? never()], release: true });
      await queue.enqueue("chat", { items: [{ kind: "reset", class: "command", payload: "r" }] });
      const commanded = await takenTurn(fixture);
      const command = await claimed(fixture, commanded);
      expect(textsOf(command?.batches)).toEqual(["r"]);
      await committed(fixture, commanded, {
        turn: "c",
        claims: [command?.ref ?? never()],
        release: true,
      });
      await say(fixture, "b");
      const last = await takenTurn(fixture);
      expect(textsOf((await claimed(fixture, last))?.batches)).toEqual(["a", "b"]);
    }),
  );

  test(
    "[RN16] return marked when the turn gives up and has consumed nothing, claimed or not",
    onAgents(backend, async (fixture) => {
      const { runs, queue, sessions } = fixture;
      const idle = async (): Promise<readonly string[]> => {
        expect(await sessions.head("chat")).toMatchObject({ openTurn: null });
        return queued(fixture);
      };
      await say(fixture, "a");
      const first = await takenTurn(fixture);
      await claimed(fixture, first);
      await committed(fixture, first, { turn: "1", nodes: reply, release: true });
      expect(await idle()).toEqual(["a failed 1 held back"]);
      await say(fixture, "b");
      const second = await takenTurn(fixture);
      await committed(fixture, second, { turn: "2", nodes: reply, release: true });
      expect(await idle()).toEqual(["a failed 2 held back", "b failed 1 held back"]);
      await queue.retry("chat");
      const third = await takenTurn(fixture);
      await committed(fixture, third, { turn: "3", nodes: reply });
      await runs.finish(third.id, third.version, { kind: "completed", value: 1 }, { fence: ann });
      expect(await idle()).toEqual(["a failed 3 held back", "b failed 2 held back"]);
      // Work that it leaves behind it is not marked once it has consumed some.
      await say(fixture, "c");
      const last = await takenTurn(fixture);
      const work = await claimed(fixture, last, { limit: 1 });
      await committed(fixture, last, { turn: "4", claims: [work?.ref ?? never()] });
      await claimed(fixture, last, { key: "more" });
      await committed(fixture, last, { turn: "5", nodes: reply, release: true });
      expect(await openTurn(fixture)).not.toBe(last.id);
      expect(await queued(fixture)).toEqual(["c"]);
      await expectSound(fixture.database);
    }),
  );

  test(
    "[RN16] return unmarked when the turn hands the session to another agent",
    onAgents(backend, async (fixture) => {
      const { runs, sessions } = fixture;
      await say(fixture, "a");
      const turn = await takenTurn(fixture);
      await claimed(fixture, turn);
      await inTurn(fixture, turn, sessions.assign.prepare("chat", "billing"));
      await committed(fixture, turn, { turn: "1", nodes: reply, release: true });
      expect(await runs.get(await openTurn(fixture))).toMatchObject({ function: "agent/billing" });
      expect(await queued(fixture)).toEqual(["a"]);
      await expectSound(fixture.database);
    }),
  );

  test(
    "[RN16] that are held back stand for no wake: it begins a turn of its own",
    onAgents(backend, async (fixture) => {
      const { runs, queue, processes } = fixture;
      const constant = (value: string): { kind: "constant"; value: string } => ({
        kind: "constant",
        value,
      });
      await processes.register({
        id: "p",
        kind: "k",
        wakeTarget: "chat",
        eventTypes: [
          { name: "built", wake: { input: constant("woken"), dedupe: constant("all") } },
        ],
      });
      const woken = async (): Promise<unknown> =>
        (await processes.append("p", { type: "built" })).wake?.delivery;
      expect(await woken()).toMatchObject({ kind: "queued" });
      expect(await woken()).toMatchObject({ kind: "coalesced" });
      const first = await takenTurn(fixture);
      await claimed(fixture, first);
      await runs.cancel(first.id, { force: true });
      expect(await woken()).toMatchObject({ kind: "queued" });
      expect(await openTurn(fixture)).not.toBe(first.id);
      expect(await woken()).toMatchObject({ kind: "coalesced" });
      expect((await queue.list("chat")).items).toMatchObject([
        { isHeldBack: true },
        { isHeldBack: false },
      ]);
      await expectSound(fixture.database);
    }),
  );

  test(
    "[RN16] stay while the turn is parked or paused",
    onAgents(backend, async (fixture) => {
      const { runs } = fixture;
      await say(fixture, "a");
      const turn = await takenTurn(fixture);
      const work = await claimed(fixture, turn);
      await runs.pause(turn.id);
      await say(fixture, "b");
      expect(await queued(fixture)).toEqual(["a claimed", "b"]);
      await runs.unpause(turn.id);
      // Its worker has kept the lock, and two events came between.
      turn.version += 2;
      expect(await claimed(fixture, turn)).toEqual(work);
    }),
  );

  test(
    "[RN16] of an unreadable message fail the turn, until it is set aside",
    onAgents(backend, async (fixture) => {
      const { runs, sessions, queue } = fixture;
      await say(fixture, "a");
      await changed(fixture, sql`UPDATE holdfast_queue_item SET payload = '"changed"'`);
      for (let failed = 1; failed <= 3; failed += 1) {
        const turn = await takenTurn(fixture);
        expect(await rejection(claimed(fixture, turn))).toMatchObject({ code: "CORRUPT_ROW" });
        await runs.cancel(turn.id, { force: true });
        expect(await sessions.head("chat")).toMatchObject({ openTurn: null, turns: failed });
        await queue.retry("chat");
      }
      await say(fixture, "b");
      const turn = await takenTurn(fixture);
      const work = await claimed(fixture, turn);
      expect(textsOf(work?.batches)).toEqual(["b"]);
      expect(work?.setAside).toMatchObject([{ failedTurns: 3, items: [] }]);
      await committed(fixture, turn, { turn: "t", claims: [work?.ref ?? never()], release: true });
      expect(await sessions.head("chat")).toMatchObject({ openTurn: null });
    }),
  );
}

function damageTests(backend: Backend): void {
  test(
    "[RN16] end before a batch whose policy is unreadable, which fails its turns alone",
    onAgents(backend, async (fixture) => {
      const { runs, sessions, database } = fixture;
      for (const text of ["a", "b", "broken", "c"]) await say(fixture, text);
      await database.write("damage", () =>
        pastChecks(
          database,
          sql`UPDATE holdfast_queue_batch SET slot = 'odd' WHERE source_key = 'id:broken'`,
        ),
      );
      const turn = await takenTurn(fixture);
      const work = await claimed(fixture, turn);
      expect(textsOf(work?.batches)).toEqual(["a", "b"]);
      await committed(fixture, turn, { turn: "1", claims: [work?.ref ?? never()], release: true });
      const next = await takenTurn(fixture);
      expect(await rejection(claimed(fixture, next))).toMatchObject({ code: "CORRUPT_ROW" });
      await runs.cancel(next.id, { force: true });
      expect(await queued(fixture)).toEqual(["c"]);
      const last = await takenTurn(fixture);
      const rest = await claimed(fixture, last);
      expect(textsOf(rest?.batches)).toEqual(["c"]);
      await committed(fixture, last, { turn: "2", claims: [rest?.ref ?? never()], release: true });
      expect(await sessions.head("chat")).toMatchObject({ openTurn: null });
    }),
  );
}

function borderTests(backend: Backend): void {
  test(
    "[RN16] refuse what is no option of them, and then nothing is written",
    onAgents(backend, async (fixture) => {
      await say(fixture, "a");
      const turn = await takenTurn(fixture);
      for (const options of [
        { boundary: "now" },
        { limit: -1 },
        { limit: 257 },
        { limit: 0.5 },
        { key: "" },
        { key: "a\0b" },
        { key: 7 },
        { run: turn.id },
        { fence: {} },
        null,
        "idle",
      ])
        expect(() => fixture.queue.claimFor.prepare("chat", options as never)).toThrow(
          expect.objectContaining({ name: "HoldfastError" }),
        );
      const thrown = inTurn(fixture, turn, function* () {
        yield* fixture.queue.claimFor.prepare("chat")();
        throw new Error("after the claim");
      });
      await expect(thrown).rejects.toThrow("after the claim");
      expect(await queued(fixture)).toEqual(["a"]);
    }),
  );
}

function never(): never {
  throw new Error("Nothing was claimed.");
}
