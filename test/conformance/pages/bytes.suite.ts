import { describe, expect, test } from "vitest";
import { childId } from "../../../src/model/ids/execution-id.ts";
import type { ExecutionId } from "../../../src/model/ids/execution-id.ts";
import type { FunctionName } from "../../../src/model/ids/function-name.ts";
import { namedJoinSet } from "../../../src/model/ids/join-set-id.ts";
import { idSource } from "../../../src/model/ids/id-source.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { Database } from "../../../src/sql/database.ts";
import type { Page, PageOptions } from "../../../src/kernel.ts";
import { awaitEvents } from "../../../src/effects.ts";
import { executions, type LockPendingOptions } from "../../../src/executions.ts";
import { processes } from "../../../src/processes.ts";
import { leases, queue, sessions } from "../../../src/sessions.ts";
import { triggers } from "../../../src/triggers.ts";
import { withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { weighed } from "./weighed.ts";
import type { Scale } from "./weighed.ts";

/** What a page may read: a row more is only read if it is the first. */
const budget = 1024 * 1024;
/** Names, numbers and bodies beside the values. */
const slack = 64 * 1024;

/** The first does not fit into any page, of the others three do. */
const sizes = [1_500_000, ...Array.from({ length: 8 }, () => 300_000)];
/** Alone, then three, three and two. */
const counts = [1, 2, 3, 3];

/** In two bytes each, so that characters are not taken for bytes. */
const text = (bytes: number): string => "é".repeat(bytes / 2);

/** Writes large rows, and says how they are read page by page. */
type Fixture = (database: Database) => Promise<(page: PageOptions) => Promise<Page<unknown>>>;

/** Pages and locks read what they promise and no more, however large single values are. */
export function bytesSuite(backend: Backend): void {
  describe("the bytes of a page", () => {
    test.each(Object.entries(largeValues))(
      "[R5] are counted from the first row on: %s",
      (_, fixture) =>
        weighedPages(backend, fixture, async (pages) => {
          const found = pages.map(({ items }) => items);
          expect(found.toSorted((a, b) => a - b)).toEqual(counts);
          for (const { bytes, items } of pages)
            if (items > 1) expect(bytes).toBeLessThan(budget + slack);
          // Nothing but the one row that comes alone is larger.
          const largest = Math.max(...pages.map(({ bytes }) => bytes));
          expect(largest).toBeLessThan(1_500_000 + slack);
        }),
    );

    test("[R5] are those of all histories, responses and inputs that one call locks", () =>
      withPlace(backend, async (place) => {
        const scale: Scale = { bytes: 0 };
        const database = weighed(await place.open(), scale);
        const log = executions(database);
        for (const id of ["a", "b"]) {
          await log.create({ id, function: "f", input: text(300_000) });
          await log.append(id, 1, steps([300_000, 300_000]));
          await log.signal(id, "go", text(300_000));
        }
        const { locked } = await log.lockPending(everything(database));
        expect(scale.bytes).toBeLessThan(budget + slack);
        expect(
          locked.map(({ history, responses, ...more }) => ({
            history: history.length,
            hasMoreHistory: more.hasMoreHistory,
            responses: responses.length,
            hasMoreResponses: more.hasMoreResponses,
          })),
        ).toEqual([
          {
            history: 1,
            hasMoreHistory: true,
            responses: 0,
            hasMoreResponses: true,
          },
          {
            history: 0,
            hasMoreHistory: true,
            responses: 0,
            hasMoreResponses: true,
          },
        ]);
      }));

    test("[R5] are those of one row where it is larger than a page: it is read after the lock, alone", () =>
      withPlace(backend, async (place) => {
        const scale: Scale = { bytes: 0 };
        const database = weighed(await place.open(), scale);
        const log = executions(database);
        await longRun(database);
        const { locked } = await log.lockPending(everything(database));
        expect(locked).toMatchObject([{ history: [], hasMoreHistory: true, historyUpTo: 0 }]);
        expect(scale.bytes).toBeLessThan(slack);
        const { items, next } = await log.events("e", { from: 1 });
        expect(items).toMatchObject([{ version: 1 }]);
        expect(next).toBeDefined();
        expect(scale.bytes).toBeLessThan(1_500_000 + slack);
      }));

    test.each(Object.entries(longTexts))("[R5] count long names and causes too: %s", (_, fixture) =>
      weighedPages(backend, fixture, async (pages) => {
        expect(pages.length).toBe(2);
        expect(pages.reduce((sum, { items }) => sum + items, 0)).toBe(120);
        for (const { bytes } of pages) expect(bytes).toBeLessThan(budget + slack);
      }),
    );
  });
}

interface WeighedPage {
  readonly items: number;
  readonly bytes: number;
}

function weighedPages(
  backend: Backend,
  fixture: Fixture,
  body: (pages: readonly WeighedPage[]) => Promise<void>,
): Promise<void> {
  return withPlace(backend, async (place) => {
    const clock = manualClock(1_000_000);
    const scale: Scale = { bytes: 0 };
    const database = weighed(await place.open({ clock }), scale);
    const read = await fixture(database);
    const pages: WeighedPage[] = [];
    for (let after: string | undefined, isFirst = true; ; isFirst = false) {
      const page = await read({ limit: 1_000, ...(after && { after }) });
      pages.push({ items: page.items.length, bytes: scale.bytes });
      after = page.next;
      if (after === undefined || (!isFirst && page.items.length === 0)) break;
    }
    await body(pages.filter(({ items }) => items > 0));
  });
}

const holderOf = (database: Database) => {
  const ids = idSource(database);
  return { executor: ids.nextId("Exr"), run: ids.nextId("Run") };
};

const leaseOf = (database: Database, session: string) =>
  leases(database).waitForLease(session, { owner: "ann", incarnation: "1" }, { lease: "1 day" });

const steps = (values: readonly number[]) =>
  values.map((bytes) => ({
    kind: "stepFinished" as const,
    name: "step",
    outcome: "completed" as const,
    value: text(bytes),
  }));

/** A run with large outcomes of steps. */
async function longRun(database: Database): Promise<void> {
  const log = executions(database);
  await log.create({ id: "e", function: "f" });
  for (const [at, event] of steps(sizes).entries()) await log.append("e", at + 1, [event]);
}

const largeValues: Readonly<Record<string, Fixture>> = {
  async events(database) {
    await longRun(database);
    return (page) => executions(database).events("e", { ...page, kinds: ["stepFinished"] });
  },
  async "events, newest first"(database) {
    await longRun(database);
    return (page) =>
      executions(database).events("e", {
        ...page,
        from: 9,
        newestFirst: true,
        kinds: ["stepFinished"],
      });
  },
  async responses(database) {
    const log = executions(database);
    await log.create({ id: "e", function: "f" });
    for (const bytes of sizes) await log.signal("e", "go", text(bytes));
    return (page) => log.responses("e", page);
  },
  async "responses of children"(database) {
    const log = executions(database);
    await log.create({ id: "e", function: "f" });
    const joinSet = namedJoinSet("set");
    const name = "g" as FunctionName;
    await log.append("e", 1, [{ kind: "joinSetCreated", joinSet }]);
    for (const [at, bytes] of sizes.entries()) {
      const child = childId("e" as ExecutionId, joinSet, at + 1);
      await log.append("e", at + 2, [{ kind: "childRequested", joinSet, child, function: name }], {
        children: [{ id: child, function: name }],
      });
      await log.finish(child, 1, { kind: "completed", value: text(bytes) });
    }
    return (page) => log.responses("e", page);
  },
  async logs(database) {
    const log = executions(database);
    await log.create({ id: "e", function: "f" });
    for (const bytes of sizes)
      await log.log("e", [{ level: "info", message: "m", data: text(bytes) }]);
    return (page) => log.logs("e", page);
  },
  async "logs of a tree"(database) {
    const log = executions(database);
    await log.create({ id: "e", function: "f" });
    for (const bytes of sizes)
      await log.log("e", [{ level: "info", message: "m", data: text(bytes) }]);
    return (page) => log.logs("e", { ...page, includeDerived: true });
  },
  async "inputs of what is locked"(database) {
    const log = executions(database);
    for (const [at, bytes] of sizes.entries())
      await log.create({ id: `e${at}`, function: "f", input: text(bytes) });
    return locking(database);
  },
  async "inputs that runs were continued with"(database) {
    const log = executions(database);
    for (const [at, bytes] of sizes.entries()) {
      await log.create({ id: `e${at}`, function: "f" });
      await log.append(`e${at}`, 1, [{ kind: "continued", input: text(bytes) }]);
    }
    return locking(database);
  },
  async "nodes of a graph"(database) {
    const store = sessions(database);
    const handle = await store.create("s");
    const fence = await leaseOf(database, "s");
    for (const [at, bytes] of sizes.entries())
      await store.commit(handle, {
        turn: `t${at}`,
        fence,
        nodes: [{ kind: "note", payload: text(bytes) }],
      });
    return (page) => store.graph("s", page);
  },
  async "batches of a queue"(database) {
    await queued(database);
    return (page) => queue(database).list("s", page);
  },
  async "batches that are claimed"(database) {
    await queued(database);
    const lease = await leaseOf(database, "s");
    return async () => {
      const work = await queue(database).claimTurn(lease);
      return moreAfter(work?.batches ?? []);
    };
  },
  async "events of processes"(database) {
    const registry = processes(database);
    await registry.register({
      id: "p",
      kind: "tool",
      eventTypes: [{ name: "e" }],
    });
    for (const bytes of sizes) await registry.append("p", { type: "e", payload: text(bytes) });
    return (page) => registry.events("p", page);
  },
  async occurrences(database) {
    const rules = triggers(database);
    const source = { type: "webhook", key: "w" };
    for (const [at, bytes] of sizes.entries())
      await rules.record({ key: `o${at}`, source, payload: text(bytes) });
    return (page) => rules.occurrences(page);
  },
  async subscriptions(database) {
    const rules = triggers(database);
    for (const [at, bytes] of sizes.entries())
      await rules.subscribe({
        key: `s${at}`,
        source: { type: "webhook", key: "w" },
        target: { kind: "tool" },
        arguments: { all: { value: text(bytes) } },
      });
    return (page) => rules.list(page);
  },
  async "await-events"(database) {
    const awaited = awaitEvents(database);
    await sessions(database).create("s");
    for (const [at, bytes] of sizes.entries()) {
      const scope = { kind: "turn", id: "t", session: "s" } as const;
      const { token } = await awaited.open(scope, `k${at}`);
      await awaited.resolve(token, text(bytes));
    }
    return (page) => awaited.list("s", page);
  },
};

async function queued(database: Database): Promise<void> {
  await sessions(database).create("s");
  for (const bytes of sizes)
    await queue(database).enqueue("s", {
      items: [{ kind: "input", payload: text(bytes) }],
      slot: "join",
      mergeKey: "all",
    });
}

/** Calls that take what is there, and not a page of it. */
function moreAfter(items: readonly unknown[]): Page<unknown> {
  return { items, next: items.length > 0 ? "more" : undefined, damaged: [] };
}

function locking(database: Database): () => Promise<Page<unknown>> {
  const options = everything(database);
  return async () => {
    const { locked } = await executions(database).lockPending(options);
    return moreAfter(locked);
  };
}

function everything(database: Database): LockPendingOptions {
  const holder = holderOf(database);
  return { holder, lease: "1 day", functions: ["f"], limit: 100 };
}

/** As long as they may be: 12 kilobytes each in three bytes for each character. */
const longText = "€".repeat(4_096);

const longTexts: Readonly<Record<string, Fixture>> = {
  async sessions(database) {
    const store = sessions(database);
    await store.create("parent");
    for (let at = 0; at < 120; at += 1)
      await store.create(`s${at}`, {
        relation: { kind: "child", of: "parent", causedBy: longText },
      });
    return (page) => store.list({ ...page, parent: "parent" });
  },
  async processes(database) {
    await registered(database);
    return (page) => processes(database).list(page);
  },
  async "processes without a worker"(database) {
    await registered(database);
    return (page) => processes(database).worklist(page);
  },
  async "handles of a session"(database) {
    await sessions(database).create("s");
    await registered(database);
    for (let at = 0; at < 120; at += 1) await processes(database).grant(`p${at}`, "s");
    return (page) => processes(database).handles("s", page);
  },
  async "causes of nodes"(database) {
    const store = sessions(database);
    const handle = await store.create("s");
    const node = { kind: "note", payload: 1, causedBy: longText };
    await store.commit(handle, {
      turn: "t",
      fence: await leaseOf(database, "s"),
      nodes: Array.from({ length: 120 }, () => node),
    });
    return (page) => store.graph("s", page);
  },
  async "reasons of parked runs"(database) {
    const log = executions(database);
    for (let at = 0; at < 120; at += 1) {
      await log.create({ id: `e${at}`, function: "f" });
      await log.append(`e${at}`, 1, [
        { kind: "parked", code: "C", reason: longText, codeVersion: null },
      ]);
    }
    return (page) => log.list({ ...page, status: "parked" });
  },
  async "reasons of cancellations"(database) {
    const log = executions(database);
    const holder = holderOf(database);
    for (let at = 0; at < 120; at += 1) {
      await log.createLocked({ id: `e${at}`, function: "f" }, { holder, lease: "1 day" });
      await log.cancel(`e${at}`, { reason: longText });
    }
    return (page) => log.cancelling({ ...page, function: "f" });
  },
};

async function registered(database: Database): Promise<void> {
  for (let at = 0; at < 120; at += 1)
    await processes(database).register({
      id: `p${at}`,
      kind: "tool",
      causedBy: longText,
    });
}
