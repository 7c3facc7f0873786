import { describe, expect, test } from "vitest";
import { sql } from "../../../src/kernel.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  acquired,
  ada,
  bob,
  createSession,
  enqueued,
  inSession,
  listed,
  named,
  refOf,
  stored,
} from "../lease/leased-sessions.ts";
import type { InFixture, Work } from "../lease/leased-sessions.ts";
import { pastChecks } from "../past-checks.ts";

export function queueClaimsSuite(backend: Backend): void {
  const fixture = inSession(backend);
  describe("claiming work", () => {
    fenceTests(fixture);
    frontTests(fixture);
    boundaryTests(fixture);
    joinTests(fixture);
  });
}

const taken = (work: Work): string => named(work?.batches);
function fenceTests(fixture: InFixture): void {
  test(
    "[A30] is refused with a fence that is dead",
    fixture(async (at) => {
      const { queue, leases, clock, database } = at;
      await enqueued(at, "a");
      const released = await acquired(at, ada);
      await leases.release(released);
      const overtaken = await acquired(at, ada, 10);
      clock.advance(10);
      const expired = await acquired(at, bob, 10);
      clock.advance(10);
      expect(await rejection(queue.claimTurn(expired))).toMatchObject({
        code: "LEASE_LOST",
      });
      // From here on it is recorded that the lease has run out.
      const before = await stored(database);
      for (const [lease, reason] of [
        [released, "released"],
        [overtaken, "overtaken"],
        [expired, "expired"],
        [{ ...expired, token: "guessed" }, "overtaken"],
      ] as const)
        for (const claiming of [
          () => queue.claimTurn(lease),
          () => queue.claimCommand(lease),
          () => queue.claimBatches(lease, ["a"]),
          () => queue.completeWithoutCommit(lease, [{ claim: "", batches: [] }]),
        ])
          expect(await rejection(claiming())).toMatchObject({
            code: "LEASE_LOST",
            details: { session: "s", reason },
          });
      expect(await stored(database)).toEqual(before);
    }),
  );

  test(
    "of nothing asks for no lease and changes nothing",
    fixture(async (at) => {
      const { queue, database } = at;
      const lease = { ...(await acquired(at)), token: "guessed" };
      await enqueued(at, "a");
      const before = await stored(database);
      expect(await queue.claimTurn(lease, { limit: 0 })).toBeUndefined();
      expect(await queue.claimBatches(lease, [])).toBeUndefined();
      expect(await rejection(queue.claimTurn(lease, { limit: 257 }))).toMatchObject({
        code: "OPTION_INVALID",
      });
      expect(await stored(database)).toEqual(before);
    }),
  );

  test(
    "whose payload cannot be read claims nothing and names the row; cancelling it lets the others pass",
    fixture(async (at) => {
      const { queue, database } = at;
      if (database.durability === "memory") return;
      const bad = await enqueued(at, "bad");
      await enqueued(at, "good");
      await at.place.shell(
        "UPDATE holdfast_queue_item SET payload = '{' WHERE ordinal = 0 AND batch = (SELECT min(batch) FROM holdfast_queue_item)",
      );
      const lease = await acquired(at);
      const row = { table: "holdfast_queue_item", key: `${bad.id}.0` };
      expect(await rejection(queue.claimTurn(lease))).toMatchObject({
        code: "CORRUPT_ROW",
        details: row,
      });
      const page = await queue.list("s", { state: "pending" });
      expect(named(page.items)).toBe("good");
      expect(page.damaged).toEqual([row]);
      expect(await queue.cancel("s", bad.id)).toEqual({ ...bad, items: [] });
      expect(taken(await queue.claimTurn(lease))).toBe("good");
    }),
  );

  test(
    "of several items that cannot be read names each of them in a list",
    fixture(async ({ queue, database, place }) => {
      if (database.durability === "memory") return;
      const items = ["a", "b", "c"].map((payload) => ({
        kind: "input",
        payload,
      }));
      const outcome = await queue.enqueue("s", { items });
      if (outcome.kind === "consumed") throw new Error("It has no source.");
      await place.shell("UPDATE holdfast_queue_item SET payload = '{' WHERE ordinal <> 1");
      const { id } = outcome.batch;
      expect(await queue.list("s")).toEqual({
        items: [],
        next: undefined,
        damaged: [
          { table: "holdfast_queue_item", key: `${id}.0` },
          { table: "holdfast_queue_item", key: `${id}.2` },
        ],
      });
    }),
  );

  test(
    "of a batch with an unknown policy names the row; lists pass it over and it can be cancelled",
    fixture(async (at) => {
      const { queue, database } = at;
      const bad = await enqueued(at, "bad");
      await database.write("damage", () =>
        pastChecks(database, sql`UPDATE holdfast_queue_batch SET slot = 'odd'`),
      );
      const row = { table: "holdfast_queue_batch", key: bad.id };
      expect(await rejection(queue.claimTurn(await acquired(at)))).toMatchObject({
        code: "CORRUPT_ROW",
        details: row,
      });
      expect(await queue.list("s")).toMatchObject({
        items: [],
        damaged: [row],
      });
      expect(await queue.cancel("s", bad.id)).toMatchObject({ id: bad.id });
    }),
  );
}

function frontTests(fixture: InFixture): void {
  test(
    "[A33] by ids skips nothing that is in front of them",
    fixture(async (at) => {
      const { queue } = at;
      const a = await enqueued(at, "a");
      const b = await enqueued(at, "b");
      const lease = await acquired(at);
      for (const ids of [[b.id], [b.id, a.id], [a.id, b.id], ["unknown"]])
        expect(await queue.claimBatches(lease, ids)).toBeUndefined();
      expect(await listed(at, "pending")).toBe("a b");
      expect(taken(await queue.claimBatches(lease, [a.id]))).toBe("a");
    }),
  );

  test(
    "[A33] by ids takes a group in its order, or a command",
    fixture(async (at) => {
      const { queue } = at;
      const a = await enqueued(at, "a", { slot: "join" });
      const b = await enqueued(at, "b", { slot: "join" });
      const c = await enqueued(at, "c", { class: "command" });
      const lease = await acquired(at);
      expect(taken(await queue.claimBatches(lease, [a.id, b.id]))).toBe("a b");
      expect(taken(await queue.claimBatches(lease, [c.id]))).toBe("c");
    }),
  );

  test(
    "[A34] takes no turn past a command, and no command past a turn",
    fixture(async (at) => {
      const { queue } = at;
      const lease = await acquired(at);
      await enqueued(at, "command", { class: "command" });
      await enqueued(at, "turn");
      await enqueued(at, "later command", { class: "command" });
      expect(await queue.claimTurn(lease)).toBeUndefined();
      const command = await queue.claimCommand(lease);
      expect(taken(command)).toBe("command");
      await queue.completeWithoutCommit(lease, [refOf(command)]);
      expect(await queue.claimCommand(lease)).toBeUndefined();
      const turn = await queue.claimTurn(lease);
      expect(taken(turn)).toBe("turn");
      await queue.completeWithoutCommit(lease, [refOf(turn)]);
      expect(taken(await queue.claimCommand(lease))).toBe("later command");
    }),
  );

  test(
    "[A37] passes over what is not available yet, takes exclusive work alone, and minds its own session",
    fixture(async (at) => {
      const { queue, clock, database } = at;
      await createSession(database, "t");
      await queue.enqueue("t", {
        items: [{ kind: "input", payload: "other" }],
      });
      await enqueued(at, "later", { availableAt: 2_000 });
      await enqueued(at, "a");
      await enqueued(at, "b");
      const lease = await acquired(at);
      const first = await queue.claimTurn(lease);
      expect(taken(first)).toBe("a");
      await queue.abandon("s", refOf(first));
      clock.advance(999);
      const again = await queue.claimTurn(lease);
      expect(taken(again)).toBe("a");
      await queue.abandon("s", refOf(again));
      clock.advance(1);
      expect(taken(await queue.claimTurn(lease))).toBe("later");
      expect(taken(await queue.claimTurn(lease))).toBe("a");
      expect(taken(await queue.claimTurn(lease))).toBe("b");
      expect(await queue.claimTurn(lease)).toBeUndefined();
    }),
  );

  test(
    "[A37] takes over what was claimed under a lease that has run out, and nothing under a live one",
    fixture(async (at) => {
      const { queue, clock } = at;
      await enqueued(at, "a");
      const first = await acquired(at, ada, 10);
      const lost = await queue.claimTurn(first);
      expect(lost?.fence).toBe(1);
      expect(await queue.claimTurn(first)).toBeUndefined();
      clock.advance(10);
      const second = await acquired(at, bob);
      const won = await queue.claimTurn(second);
      expect(won).toMatchObject({ fence: 2 });
      expect(taken(won)).toBe("a");
      expect(await rejection(queue.completeWithoutCommit(second, [refOf(lost)]))).toMatchObject({
        code: "CLAIM_LOST",
      });
      await queue.completeWithoutCommit(second, [refOf(won)]);
    }),
  );

  test(
    "[AX1] reaches one batch that is ready behind forty that are claimed",
    fixture(async (at) => {
      const { queue } = at;
      const lease = await acquired(at);
      for (let index = 0; index < 40; index += 1) await enqueued(at, `${index}`, { slot: "join" });
      const many = await queue.claimTurn(lease);
      expect(many?.batches).toHaveLength(40);
      await enqueued(at, "ready");
      expect(taken(await queue.claimTurn(lease, { limit: 1 }))).toBe("ready");
    }),
  );
}

function boundaryTests(fixture: InFixture): void {
  test(
    "[A35] inside a turn waits for what is first in line, unless that is claimed",
    fixture(async (at) => {
      const { queue } = at;
      const lease = await acquired(at);
      const inside = { boundary: "activeTurn" } as const;
      await enqueued(at, "after", { delivery: "afterTurnCommit" });
      await enqueued(at, "soon", { delivery: "earliestSafeBoundary" });
      expect(await queue.claimTurn(lease, inside)).toBeUndefined();
      expect(taken(await queue.claimTurn(lease))).toBe("after");
      expect(taken(await queue.claimTurn(lease, inside))).toBe("soon");
    }),
  );
}

function joinTests(fixture: InFixture): void {
  const join = { slot: "join" } as const;

  test(
    "[A37] takes at most so many of a group, and the rest next time",
    fixture(async (at) => {
      const { queue } = at;
      const lease = await acquired(at);
      for (const name of ["a", "b", "c"]) await enqueued(at, name, join);
      expect(taken(await queue.claimTurn(lease, { limit: 2 }))).toBe("a b");
      expect(taken(await queue.claimTurn(lease, { limit: 2 }))).toBe("c");
    }),
  );

  test(
    "[A38] groups neighbours with equal delivery and merge key; a difference starts the next claim",
    fixture(async (at) => {
      const { queue } = at;
      const lease = await acquired(at);
      const late = { ...join, delivery: "afterTurnCommit" } as const;
      for (const [name, draft] of [
        ["a", join],
        ["b", join],
        ["c", { ...join, mergeKey: "x" }],
        ["d", { ...join, mergeKey: "x" }],
        ["e", { ...join, mergeKey: "y" }],
        ["f", { ...late, mergeKey: "y" }],
        ["g", { slot: "exclusive", mergeKey: "y" }],
        ["h", { ...join, mergeKey: "y" }],
        ["i", { ...join, mergeKey: "y", class: "command" }],
      ] as const)
        await enqueued(at, name, draft);
      const groups: string[] = [];
      for (let work = await queue.claimTurn(lease); work !== undefined;) {
        groups.push(taken(work));
        work = await queue.claimTurn(lease);
      }
      expect(groups).toEqual(["a b", "c d", "e", "f", "g", "h"]);
    }),
  );
}
