import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import type { Backend } from "../backend.ts";
import { step } from "./execution-events.ts";
import { ann, byAnn, dump, kindsOf, onExecutions, refusal } from "./fixture.ts";
import { faultsIn } from "./faults.ts";
import { readTables } from "./tables.ts";

const asked: GivenEvent = {
  kind: "receiveRequested",
  signal: "go",
  expiresAt: 5,
  call: 1,
  seen: 0,
};

function timedOut(seen: number, signal = "go"): GivenEvent {
  return { kind: "receiveTimedOut", signal, call: 1, seen };
}

export function executionUnreadTimeoutsSuite(backend: Backend): void {
  describe("a timeout of a receive", () => {
    test(
      "[RN5] is refused with its whole append while a message of its name is unread",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [asked]);
        await store.signal("a", "go", "here");
        const before = await dump(fixture);
        for (const events of [
          [timedOut(0)],
          [step("s"), timedOut(0)],
          [timedOut(0), step("s")],
          [timedOut(0, "other"), timedOut(0)],
        ])
          expect(await refusal(fixture, () => store.append("a", 2, events))).toBe("MESSAGE_UNREAD");
        expect(await dump(fixture)).toEqual(before);
        await expect(store.append("a", 2, [timedOut(0)])).rejects.toMatchObject({
          retryable: false,
          details: { id: "a", signal: "go", seq: 1 },
        });
        // Code that has been given the message may time out in another receive.
        await store.append("a", 2, [timedOut(1)]);
        expect(await kindsOf(fixture, "a")).toBe("created receiveRequested receiveTimedOut");
      }),
    );

    test(
      "[RN5] is refused to the worker that holds the run, which appends without the general path",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const { key, nextVersion } = await store.lock("a", 1, byAnn);
        const options = { fence: ann, key };
        await store.append("a", nextVersion, [asked], options);
        await store.signal("a", "go", "here");
        const late = (): Promise<unknown> =>
          store.append("a", nextVersion + 1, [step("s"), timedOut(0)], options);
        expect(await refusal(fixture, late)).toBe("MESSAGE_UNREAD");
        const taken = await store.append("a", nextVersion + 1, [timedOut(1)], options);
        // The same append again answers as before, though another message has come since.
        await store.signal("a", "go", "later");
        expect(await store.append("a", nextVersion + 1, [timedOut(1)], options)).toEqual(taken);
        await store.append("a", nextVersion + 2, [step("s")], options);
      }),
    );

    test(
      "[RN5] is recorded when what has come is not for it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.signal("a", "other", 1);
        await store.append("a", 1, [asked, timedOut(0)]);
        // A message that was taken by name, and one that an earlier pass has read, are not unread.
        await store.signal("a", "go", 2);
        await store.receive("a", "go", 3);
        await store.append("a", 4, [timedOut(0)]);
        await store.signal("a", "go", 3);
        await store.append("a", 5, [{ kind: "continued", input: 1, seen: 3, unread: [1] }]);
        await store.append("a", 6, [timedOut(0)]);
        expect(await refusal(fixture, () => store.append("a", 7, [timedOut(0, "other")]))).toBe(
          "MESSAGE_UNREAD",
        );
        expect(faultsIn(await readTables(fixture.database))).toEqual([]);
      }),
    );

    test(
      "[RN5] is refused in a set of appends, and the others are made",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const ids = Array.from({ length: 20 }, (_, n) => `r-${n}`);
        for (const id of ids) {
          await store.create({ id, function: "f" });
          await store.append(id, 1, [asked]);
        }
        const unread = ids.filter((_, n) => n % 3 === 0);
        for (const id of unread) await store.signal(id, "go", 1);
        for (const id of ids.slice(-2)) await store.signal(id, "other", 1);
        const made = await Promise.allSettled(
          ids.map((id) => store.append(id, 2, [step("s"), timedOut(0)])),
        );
        const refused = made.flatMap((one, n) =>
          one.status === "rejected" ? [[ids[n], (one.reason as { code?: string }).code]] : [],
        );
        expect(refused).toEqual(unread.map((id) => [id, "MESSAGE_UNREAD"]));
        for (const id of ids)
          expect((await store.get(id)).nextVersion).toBe(unread.includes(id) ? 2 : 4);
        expect(faultsIn(await readTables(fixture.database))).toEqual([]);
      }),
    );

    test(
      "[RN5] never passes a message that was acknowledged at the same time",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        for (let round = 0; round < 40; round += 1) {
          const id = `race-${round}`;
          await store.create({ id, function: "f" });
          await store.append(id, 1, [asked]);
          const [sent, out] = await Promise.allSettled(
            round % 2 === 0
              ? [store.signal(id, "go", 1), store.append(id, 2, [timedOut(0)])]
              : [store.append(id, 2, [timedOut(0)]), store.signal(id, "go", 1)].toReversed(),
          );
          expect(sent?.status).toBe("fulfilled");
          if (out?.status === "rejected")
            expect(out.reason).toMatchObject({ code: "MESSAGE_UNREAD" });
        }
        expect(faultsIn(await readTables(fixture.database))).toEqual([]);
      }),
    );
  });
}
