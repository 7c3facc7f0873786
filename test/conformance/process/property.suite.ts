import fc from "fast-check";
import { expect, test } from "vitest";
import { isHoldfastError } from "../../../src/model/errors.ts";
import { foldProcess } from "../../../src/model/process/fold.ts";
import type { ProcessState, SessionScope } from "../../../src/model/process/process.ts";
import { parseSessionId } from "../../../src/sessions.ts";
import { rows, type Tx, sql } from "../../../src/kernel.ts";
import type { ProcessLease } from "../../../src/processes.ts";
import { eventColumns, eventOf } from "../../../src/stores/process/event-row.ts";
import type { EventRow } from "../../../src/stores/process/event-row.ts";
import { processColumns, stateOf } from "../../../src/stores/process/process-row.ts";
import type { ProcessRow } from "../../../src/stores/process/process-row.ts";
import { isDeep, seed } from "../../depth.ts";
import type { Backend } from "../backend.ts";
import { onProcesses } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";
import { expectSound } from "../sound.ts";

/** What somebody does next to one of the processes. */
interface Step {
  readonly do: keyof typeof actions;
  readonly who: number;
  readonly n: number;
}

const eventTypes = [
  { name: "e" },
  { name: "wake", wake: { input: { kind: "payload" } } },
  {
    name: "wake.same",
    wake: {
      input: { kind: "payload" },
      dedupe: { kind: "constant", value: "same" },
    },
  },
  { name: "built", terminal: { state: "completed" } },
  {
    name: "broke",
    terminal: { state: "failed", output: { kind: "payload" } },
  },
  { name: "signal.go" },
] as const;

/** Keeps the last lease of each process, also when it is over. */
interface LeasedFixture extends ProcessFixture {
  readonly leases: Map<string, ProcessLease>;
}

type Action = (leased: LeasedFixture, id: string, n: number) => Promise<unknown>;

const actions = {
  append: ({ store }, id, n) => store.append(id, { type: "e", payload: n }),
  replay: ({ store }, id, n) =>
    store.append(id, { type: "e", payload: n % 2, replayKey: `k${n % 3}` }),
  wake: ({ store }, id, n) => store.append(id, { type: "wake", payload: n, replayKey: `w${n}` }),
  wakeSame: ({ store }, id, n) => store.append(id, { type: "wake.same", payload: n }),
  build: ({ store }, id, n) => store.append(id, { type: "built", payload: n, replayKey: "b" }),
  breakDown: ({ store, leases }, id, n) => {
    const fence = leases.get(id);
    const event = { type: "broke", payload: n, replayKey: "x" };
    return store.append(id, { ...event, ...(fence && { fence }) });
  },
  complete: ({ store }, id, n) => store.complete(id, { kind: "cancelled", message: `${n % 2}` }),
  cancel: ({ store }, id, n) => store.cancel(id, { reason: `${n % 2}` }),
  signal: ({ store }, id, n) => store.signal(id, "go", n, { key: `${n}` }),
  wait: ({ store }, id, n) => store.setWait(id, { signal: "go", ordinal: 1 + (n % 3) }),
  resume: ({ store }, id) => store.clearWait(id),
  refer: ({ store }, id, n) => store.setExternalRef(id, { backend: "b", id: `${n % 2}` }),
  async claim({ store, leases }, id, n) {
    const claimant = { owner: `o${n % 2}`, incarnation: "1" };
    const outcome = await store.claim(id, claimant, { lease: n * 10 });
    if (outcome.kind === "acquired") leases.set(id, outcome.lease);
  },
  async start({ store, leases }, id) {
    const lease = leases.get(id);
    if (lease !== undefined) await store.start(lease);
  },
  abandon: ({ store }, id, n) => store.abandon(id, `${n % 2}`),
  async forget({ sessions }, _, n) {
    // Seldom, since afterwards nobody is woken.
    if (n === 7) await sessions.delete("s");
  },
  async clock({ clock }, _, n) {
    await Promise.resolve();
    clock.set(1_000_000 + n * 20);
  },
} satisfies Record<string, Action>;

const steps = fc.array(
  fc.record({
    do: fc.constantFrom(...(Object.keys(actions) as Step["do"][])),
    who: fc.nat({ max: 2 }),
    n: fc.nat({ max: 7 }),
  }),
  { minLength: 5, maxLength: isDeep ? 120 : 24 },
);

export function processPropertySuite(backend: Backend): void {
  test(
    "whatever is done to processes, their records are folds of their events, and every wake is queued once",
    { timeout: isDeep ? 600_000 : 30_000 },
    async () => {
      const runs = isDeep ? 200 : 4;
      let lives = 0;
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          await onProcesses(backend, async (fixture) => {
            await lived(fixture, sequence);
            await expectSound(fixture.database);
          })();
          lives += 1;
        }),
        { numRuns: runs, seed },
      );
      expect(lives).toBe(runs);
    },
  );
}

async function lived(fixture: ProcessFixture, sequence: readonly Step[]): Promise<void> {
  const leased: LeasedFixture = { ...fixture, leases: new Map() };
  const ids = ["p", "q", "r"];
  for (const id of ids)
    await fixture.store.register({
      id,
      kind: "k",
      eventTypes,
      wakeTarget: { session: "s", frame: id },
    });
  // In rounds of a few at once, since calls of several callers overlap.
  for (let at = 0; at < sequence.length; at += 3)
    await Promise.all(
      sequence
        .slice(at, at + 3)
        .map(({ do: action, who, n }) =>
          actions[action](leased, ids[who] ?? "p", n).catch(refused),
        ),
    );
  const { found, queued } = await fixture.database.read("lived", everything);
  for (const { id, state, events } of found) {
    const target: SessionScope = {
      session: parseSessionId("s"),
      generation: 1,
      frame: id,
    };
    expect({ id, ...state }).toEqual({ id, ...foldProcess(events, target) });
    expect(events.map((event) => event.sequence)).toEqual(events.map((_, at) => at));
  }
  const isGone = (await fixture.sessions.open("s")) === undefined;
  const sent = found.flatMap(({ id, events }) =>
    events.flatMap(({ wake, sequence: at }) =>
      wake?.delivery.kind === "queued" ? [`${id}:${at}`] : [],
    ),
  );
  expect(queued).toEqual(isGone ? [] : sent.toSorted());
}

/** A refusal is an answer; anything else is a fault. */
function refused(error: unknown): void {
  if (!isHoldfastError(error)) throw error;
}

interface Lived {
  readonly id: string;
  readonly state: ProcessState;
  readonly events: readonly ReturnType<typeof eventOf>[];
}

function* everything(): Tx<{
  readonly found: readonly Lived[];
  readonly queued: readonly string[];
}> {
  const processes = yield* rows<ProcessRow>(sql`
    SELECT ${processColumns} FROM holdfast_process p ORDER BY p.id`);
  const found: Lived[] = [];
  for (const process of processes) {
    const events = yield* rows<EventRow>(sql`
      SELECT ${eventColumns} FROM holdfast_process_event e WHERE e.process = ${process.key} ORDER BY e.sequence`);
    const { id } = process;
    found.push({
      id,
      state: stateOf(process),
      events: events.map((event) => eventOf({ ...event, id })),
    });
  }
  const queued = yield* rows<{ process: string; sequence: number }>(sql`
    SELECT process, sequence FROM holdfast_queue_batch`);
  return {
    found,
    queued: queued.map(({ process, sequence }) => `${process}:${sequence}`).toSorted(),
  };
}
