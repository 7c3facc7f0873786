import { describe, expect, test } from "vitest";
import { workflow } from "../../../src/runtime/definition/definitions.ts";
import type { TurnInput } from "../../../src/model/session/agent.ts";
import { queue } from "../../../src/stores/queue/queue.ts";
import { sessions } from "../../../src/stores/session/sessions.ts";
import type { Backend } from "../backend.ts";
import { expectSound } from "../sound.ts";
import { onRuntime, type RuntimeFixture } from "./fixture.ts";
import { until } from "./waiting.ts";

/** The texts that a turn has taken from the queue. */
type Taken = readonly string[];

export function runtimeAgentTurnsSuite(backend: Backend): void {
  describe("a workflow that takes the turns of sessions", () => {
    test(
      "[RN15] [RN16] answers every message once, from many senders into busy sessions, on two workers",
      onRuntime(backend, async (fixture) => {
        const { holdfast, another, database } = fixture;
        const store = sessions(database);
        const work = queue(database);
        const agent = echoing(fixture);
        await holdfast.work([agent]);
        await (await another()).work([agent]);
        const names = ["s0", "s1", "s2"];
        for (const name of names) await store.create(name, { agent: "echo" });
        const sent = Array.from({ length: 45 }, (_, index) => index);
        await Promise.all(
          sent.map((index) =>
            work.enqueue(String(names[index % 3]), {
              items: [{ kind: "message", payload: `m${index}` }],
              slot: index % 2 === 0 ? "join" : "exclusive",
              source: `m${index}`,
            }),
          ),
        );
        await until(async () => {
          const { items } = await store.list({ agent: "echo" });
          return items.every(({ openTurn }) => openTurn === null);
        });
        for (const [place, name] of names.entries()) {
          const { nodes } = await store.path(name);
          const answered = nodes.flatMap(({ payload }) => payload as Taken);
          const own = sent.filter((index) => index % 3 === place).map((index) => `m${index}`);
          expect(answered.toSorted()).toEqual(own.toSorted());
          expect((await work.list(name)).items).toEqual([]);
        }
        await expectSound(database);
      }),
    );

    test(
      "[RN15] fails on a message that kills it, and goes on with the next one",
      onRuntime(backend, async ({ holdfast, database }) => {
        const store = sessions(database);
        const work = queue(database);
        await store.create("s", { agent: "echo" });
        const agent = workflow("agent/echo", async (ctx, { session, generation }: TurnInput) => {
          const texts = await ctx.transaction("begin", function* () {
            const claimed = yield* work.claimFor.prepare(session)();
            return claimed?.batches.map(({ items: [item] }) => String(item?.payload)) ?? [];
          });
          if (texts.includes("poison")) throw new Error("no");
          await ctx.transaction("commit", function* () {
            const again = yield* work.claimFor.prepare(session)();
            const handle = { id: session as never, generation };
            const claims = again === undefined ? [] : [again.ref];
            yield* store.commit.prepare(handle, { turn: ctx.id, claims, release: true })();
          });
        });
        await holdfast.work([agent]);
        const say = (text: string): Promise<unknown> =>
          work.enqueue("s", { items: [{ kind: "message", payload: text }], source: text });
        await say("poison");
        const isIdle = async (): Promise<boolean> => (await store.head("s")).openTurn === null;
        await until(isIdle);
        expect((await work.list("s")).items).toMatchObject([{ failedTurns: 1, isHeldBack: true }]);
        expect(await store.head("s")).toMatchObject({ turns: 1, revision: 0 });
        await say("fine");
        await until(isIdle);
        // The poison was taken along once more, and the other message did not have to wait for it.
        expect((await work.list("s")).items).toMatchObject([{ failedTurns: 2, isHeldBack: true }]);
        expect(await store.head("s")).toMatchObject({ turns: 3, revision: 1 });
        await expectSound(database);
      }),
    );
  });
}

/** Answers each turn with a node that has what it took. */
function echoing({ database }: RuntimeFixture): ReturnType<typeof workflow<void, TurnInput>> {
  const store = sessions(database);
  const work = queue(database);
  return workflow("agent/echo", async (ctx, { session, generation }: TurnInput) => {
    const begin = work.claimFor.prepare(session);
    const claimed = await ctx.transaction("begin", function* () {
      const taken = yield* begin();
      if (taken === undefined) return null;
      const { ref, batches } = taken;
      return { ref, texts: batches.map(({ items: [item] }) => String(item?.payload)) };
    });
    const payload = await ctx.step("think", () => claimed?.texts ?? []);
    const commit = store.commit.prepare(
      { id: session as never, generation },
      {
        turn: ctx.id,
        nodes: claimed === null ? [] : [{ kind: "message", role: "assistant", payload }],
        claims: claimed === null ? [] : [claimed.ref],
        release: true,
      },
    );
    await ctx.transaction("commit", function* () {
      yield* commit();
    });
  });
}
