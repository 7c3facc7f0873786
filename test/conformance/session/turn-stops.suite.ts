import { describe, expect, test } from "vitest";
import { attachments } from "../../../src/stores/attachment/attachments.ts";
import { rejection, type Backend } from "../backend.ts";
import { ann } from "../execution/fixture.ts";
import { Meddling } from "../runtime/meddling.ts";
import {
  agentFixture,
  claimed,
  committed,
  inTurn,
  onAgents,
  openTurn,
  say,
  takenTurn,
} from "./agents.ts";

export function turnStopsSuite(backend: Backend): void {
  describe("an open turn", () => {
    test(
      "[RN15] is asked to stop by a mark and a signal at once, and its commit sees the mark",
      onAgents(backend, async (fixture) => {
        const { sessions, runs } = fixture;
        expect(await sessions.stop("chat")).toBe("idle");
        await say(fixture, "a");
        const turn = await takenTurn(fixture);
        expect(await sessions.stop("chat", { turn: "turn:another" })).toBe("tooLate");
        expect(await sessions.stop("chat", { turn: turn.id, reason: "enough" })).toBe("stopping");
        expect(await sessions.stop("chat", { reason: "another reason" })).toBe("stopping");
        expect((await runs.responses(turn.id)).items).toMatchObject([
          { response: { kind: "signal", signal: "holdfast/stop", value: "enough" } },
        ]);
        const lock = sessions.lock.prepare("chat");
        expect(await inTurn(fixture, turn, lock)).toMatchObject({
          openTurn: turn.id,
          isStopping: true,
        });
        const work = await claimed(fixture, turn);
        await say(fixture, "b");
        await committed(fixture, turn, {
          turn: "t",
          claims: work === undefined ? [] : [work.ref],
          release: true,
        });
        // The next turn was not asked to stop, and the last one cannot be any more.
        expect(await sessions.head("chat")).toMatchObject({ isStopping: false, turns: 2 });
        expect(await sessions.stop("chat", { turn: turn.id })).toBe("tooLate");
      }),
    );

    test(
      "[RN15] is stopped or too late, whichever comes first, in any race with its commit",
      onAgents(backend, async (fixture) => {
        const { sessions } = fixture;
        for (let round = 0; round < 10; round += 1) {
          await say(fixture, `m${round}`);
          const turn = await takenTurn(fixture);
          const work = await claimed(fixture, turn);
          const lock = sessions.lock.prepare("chat");
          const handle = { id: "chat" as never, generation: 1 };
          const commit = sessions.commit.prepare(handle, {
            turn: turn.id,
            claims: work === undefined ? [] : [work.ref],
            release: true,
          });
          const ending = inTurn(fixture, turn, function* () {
            const { isStopping } = yield* lock();
            yield* commit();
            return isStopping;
          });
          const [stopped, wasStopping] = await Promise.all([
            sessions.stop("chat", { turn: turn.id }),
            // A signal may have come between: then the event is written behind it.
            ending,
          ]);
          expect(stopped).toBe(wasStopping ? "stopping" : "tooLate");
        }
      }),
    );

    test(
      "[RN15] is stopped instead of the one before it, which was asked to stop and gave up since",
      onAgents(backend, async (fixture) => {
        const { place, database, clock, sessions } = fixture;
        const meddling = new Meddling(database);
        const late = agentFixture(place, meddling.database, clock).sessions;
        for (const named of [false, true]) {
          await say(fixture, `first ${String(named)}`);
          const turn = await takenTurn(fixture);
          const work = await claimed(fixture, turn);
          await say(fixture, `second ${String(named)}`);
          expect(await sessions.stop("chat", { reason: "one" })).toBe("stopping");
          const held = meddling.holdNext("stopTurn", "call");
          const stopping = late.stop("chat", { reason: "two", ...(named && { turn: turn.id }) });
          await held.reached;
          const claims = work === undefined ? [] : [work.ref];
          await committed(fixture, turn, { turn: turn.id, claims, release: true });
          held.release();
          expect(await stopping).toBe(named ? "tooLate" : "stopping");
          expect(await sessions.head("chat")).toMatchObject({ isStopping: !named });
        }
      }),
    );

    test(
      "[RN15] refuses a stop with a hostile argument, and then nothing is written",
      onAgents(backend, async (fixture) => {
        const { sessions, runs } = fixture;
        await say(fixture, "a");
        for (const options of [
          { turn: "" },
          { turn: 7 },
          { reason: "" },
          { reason: "a\0b" },
          { force: true },
          null,
          7,
        ])
          expect(await rejection(sessions.stop("chat", options as never))).toMatchObject({
            name: "HoldfastError",
          });
        expect(await rejection(sessions.stop("nobody"))).toMatchObject({
          code: "SESSION_NOT_FOUND",
        });
        expect((await runs.responses(await openTurn(fixture))).items).toEqual([]);
        expect(await sessions.head("chat")).toMatchObject({ isStopping: false });
      }),
    );

    test(
      "[RN16] keeps the attachments that it has not committed yet, and for their grace period after it",
      onAgents(backend, async (fixture) => {
        const { database, clock, runs, sessions } = fixture;
        const store = attachments(database);
        const day = 86_400_000;
        const { id } = await store.put("chat", new Uint8Array([1]), { mediaType: "image/png" });
        await say(fixture, "look");
        clock.advance(7 * day);
        expect(await store.sweep()).toMatchObject({ forgotten: 0 });
        const turn = await takenTurn(fixture);
        const work = await claimed(fixture, turn);
        await runs.finish(
          turn.id,
          turn.version,
          { kind: "failed", error: { name: "E", message: "m" } },
          { fence: ann },
        );
        expect(await store.sweep()).toMatchObject({ forgotten: 0 });
        await say(fixture, "again");
        clock.advance(7 * day);
        const next = await takenTurn(fixture);
        const both = await claimed(fixture, next);
        expect(both?.batches).toHaveLength(2);
        expect(work?.batches).toHaveLength(1);
        await committed(fixture, next, {
          turn: "t",
          claims: both === undefined ? [] : [both.ref],
          attachments: [id],
          release: true,
        });
        await store.put("chat", new Uint8Array([2]), { mediaType: "image/png" });
        clock.advance(2 * day);
        expect(await store.sweep()).toMatchObject({ forgotten: 1 });
        expect(await sessions.head("chat")).toMatchObject({ openTurn: null });
      }),
    );
  });
}
