import { describe, expect, test } from "vitest";
import { rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection, type Backend } from "../backend.ts";
import { ann } from "../execution/fixture.ts";
import { expectSound } from "../sound.ts";
import { Meddling } from "../runtime/meddling.ts";
import {
  agentFixture,
  claimed,
  committed,
  finishedTurn,
  onAgents,
  openTurn,
  say,
  takenTurn,
  textsOf,
  type AgentFixture,
} from "./agents.ts";

/** What is left of runs: their ids, and the number of their events. */
async function leftOfRuns({ database }: AgentFixture): Promise<readonly object[]> {
  return database.read("left", () =>
    rows(sql`
      SELECT x.id, x.is_erased AS erased, (SELECT COUNT(*) FROM holdfast_execution_event e WHERE e.execution = x.key) AS events
      FROM holdfast_execution x WHERE x.session IS NOT NULL ORDER BY x.key`),
  );
}

export function turnErasingSuite(backend: Backend): void {
  describe("erasing a session of an agent", () => {
    test(
      "[RN17] ends its turns by force, and erases their runs and the sessions below it",
      onAgents(backend, async (fixture) => {
        const { sessions, queue, runs, database } = fixture;
        await say(fixture, "a");
        const first = await finishedTurn(fixture);
        await say(fixture, "b");
        const turn = await takenTurn(fixture);
        const work = await claimed(fixture, turn);
        await committed(fixture, turn, { turn: "t", claims: work === undefined ? [] : [work.ref] });
        await say(fixture, "c");
        const relation = { kind: "child", of: "chat" } as const;
        await sessions.create("sub", { agent: "support", relation });
        await sessions.create("leaf", { relation: { kind: "child", of: "sub" } });
        await queue.enqueue("sub", { items: [{ kind: "message", payload: "below" }] });
        const below = (await sessions.head("sub")).openTurn;
        for (const id of ["sub", "leaf"])
          expect(await rejection(sessions.erase(id))).toMatchObject({
            code: "SESSION_OWNED",
            details: { id, root: "chat" },
          });
        const report = await sessions.erase("chat");
        expect(report).toMatchObject({ existed: true, generation: 1 });
        expect(await leftOfRuns(fixture)).toEqual(
          [first, turn.id, below].map((id) => ({ id, erased: 1, events: 0 })),
        );
        for (const id of ["chat", "sub", "leaf"]) expect(await sessions.open(id)).toBeUndefined();
        expect(
          await rejection(
            runs.finish(turn.id, turn.version + 1, { kind: "completed", value: 1 }, { fence: ann }),
          ),
        ).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
        expect(await sessions.erase("chat")).toMatchObject({ existed: true, rows: 0 });
        await sessions.create("chat", { agent: "support" });
        await say(fixture, "a");
        expect(await openTurn(fixture)).not.toBe(first);
        await expectSound(database);
      }),
    );

    test(
      "[RN17] goes on where it was interrupted, whatever slice it was",
      onAgents(backend, async (fixture) => {
        const { sessions, queue } = fixture;
        await sessions.create("sub", { agent: "support", relation: { kind: "child", of: "chat" } });
        await queue.enqueue("sub", { items: [{ kind: "message", payload: "below" }] });
        for (const text of ["a", "b", "c"]) {
          await say(fixture, text);
          if (text !== "c") await finishedTurn(fixture);
        }
        let attempts = 0;
        for (let isDone = false; !isDone; attempts += 1) {
          const stop = new AbortController();
          let slices = 0;
          const options = {
            rowsPerSlice: 1,
            signal: stop.signal,
            onProgress: () => {
              slices += 1;
              if (slices > attempts % 4) stop.abort();
            },
          };
          isDone = await sessions.erase("chat", options).then(
            () => true,
            (error: unknown) => {
              expect(error).toMatchObject({ code: "ABORTED" });
              return false;
            },
          );
          expect(attempts).toBeLessThan(200);
        }
        expect(attempts).toBeGreaterThan(1);
        for (const left of await leftOfRuns(fixture))
          expect(left).toMatchObject({ erased: 1, events: 0 });
        expect(await sessions.open("sub")).toBeUndefined();
        await expectSound(fixture.database);
      }),
    );

    test(
      "[RN17] spares a later generation, with its turns and the sessions below it",
      onAgents(backend, async (fixture) => {
        const { sessions, database } = fixture;
        await say(fixture, "a");
        const before = await openTurn(fixture);
        await sessions.delete("chat");
        await sessions.create("chat", { agent: "support" });
        await sessions.create("sub", { relation: { kind: "child", of: "chat" } });
        await say(fixture, "b");
        const turn = await takenTurn(fixture);
        await sessions.erase({ id: "chat", generation: 1 });
        expect(await leftOfRuns(fixture)).toMatchObject([
          { id: before, erased: 1, events: 0 },
          { id: turn.id, erased: null },
        ]);
        expect(await sessions.open("sub")).toMatchObject({ generation: 1 });
        const work = await claimed(fixture, turn);
        expect(textsOf(work?.batches)).toEqual(["b"]);
        await sessions.erase({ id: "chat", generation: 2 });
        expect(await sessions.open("sub")).toBeUndefined();
        await expectSound(database);
      }),
    );

    test(
      "[RN17] goes on in a session below that had been deleted, even one whose rows are gone",
      onAgents(backend, async (fixture) => {
        const { sessions, queue, database } = fixture;
        const names = ["sub", "leaf"];
        await sessions.create("sub", { agent: "support", relation: { kind: "child", of: "chat" } });
        await sessions.create("leaf", { agent: "support", relation: { kind: "child", of: "sub" } });
        for (const name of names)
          await queue.enqueue(name, { items: [{ kind: "message", payload: name }] });
        const meddling = new Meddling(database);
        meddling.on("deletedGenerations", async (go) => {
          if ((await sessions.open("leaf")) === undefined) throw new Error("The process died.");
          return go();
        });
        const dying = agentFixture(fixture.place, meddling.database, fixture.clock).sessions;
        await expect(dying.erase("chat")).rejects.toThrow("died");
        for (const name of names) expect(await sessions.open(name)).toBeUndefined();
        expect(await leftOfRuns(fixture)).toMatchObject([{ erased: 1 }, { erased: null }]);
        await sessions.reclaim();
        await sessions.erase("chat");
        expect(await leftOfRuns(fixture)).toMatchObject([{ erased: 1 }, { erased: 1 }]);
        const parents = await database.read("parents", () =>
          rows(sql`SELECT id FROM holdfast_session WHERE parent IS NOT NULL`),
        );
        expect(parents).toEqual([]);
        await expectSound(database);
      }),
    );

    test(
      "[RN17] may begin with any of two sessions that name each other as their parent",
      onAgents(backend, async (fixture) => {
        const { sessions, database } = fixture;
        await sessions.create("sub", { relation: { kind: "child", of: "chat" } });
        await sessions.create("leaf", { relation: { kind: "child", of: "sub" } });
        const meta = await sessions.meta("chat");
        const relation = { kind: "child", of: "sub" as never, causedBy: null } as const;
        await sessions.saveMeta("chat", { ...meta, relation });
        expect(await rejection(sessions.erase("leaf"))).toMatchObject({
          code: "SESSION_OWNED",
          details: { root: "chat" },
        });
        expect(await sessions.erase("sub")).toMatchObject({ existed: true });
        for (const id of ["chat", "sub", "leaf"]) expect(await sessions.open(id)).toBeUndefined();
        expect(await sessions.erase("chat")).toMatchObject({ existed: true, rows: 0 });
        await expectSound(database);
      }),
    );

    test(
      "[RN17] asks the run of an open turn to end when the session is only deleted",
      onAgents(backend, async (fixture) => {
        const { sessions, runs } = fixture;
        await say(fixture, "a");
        const turn = await takenTurn(fixture);
        await sessions.delete("chat");
        expect(await runs.get(turn.id)).toMatchObject({ state: { lifecycle: "cancelling" } });
        await runs.finish(turn.id, turn.version + 1, { kind: "cancelled" }, { fence: ann });
        await sessions.create("chat", { agent: "support" });
        expect(await sessions.head("chat")).toMatchObject({ openTurn: null, generation: 2 });
        await expectSound(fixture.database);
      }),
    );
  });
}
