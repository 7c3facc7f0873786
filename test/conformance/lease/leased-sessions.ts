import { HoldfastError } from "../../../src/model/errors.ts";
import {
  type OwnerId,
  rows,
  run,
  type Operation,
  sql,
  type ChangeHint,
  type Database,
} from "../../../src/kernel.ts";
import {
  leases,
  type Leases,
  type Lease,
  type ClaimedWork,
  type QueueClaimRef,
  queue,
  type BatchDraft,
  type QueueBatch,
  type Queue,
} from "../../../src/sessions.ts";
import { countingClock } from "../wait-fixture.ts";
import type { CountingClock } from "../wait-fixture.ts";
import { withPlace } from "../backend.ts";
import type { Backend, Place } from "../backend.ts";

/** Sessions as the tests of leases and queues need them. */

export interface Fixture {
  readonly place: Place;
  readonly faults: Faults;
  readonly database: Database;
  readonly clock: CountingClock;
  readonly leases: Leases;
  readonly queue: Queue;
}

export type InFixture = (body: (fixture: Fixture) => Promise<void>) => () => Promise<void>;

export type Work = ClaimedWork | undefined;

/** What a claim is named by; nothing, for none. */
export function refOf(work: Work): QueueClaimRef {
  return work?.ref ?? { claim: "", batches: [] };
}

/** A database with session "s" at the instant 1,000. */
export function inSession(backend: Backend): InFixture {
  return (body) => () =>
    withPlace(backend, async (place) => {
      const clock = countingClock(1_000);
      const opened = await place.open({ clock, isWithoutPoll: true });
      await createSession(opened, "s");
      await body(fixtureOf(place, opened, clock));
    });
}

/** The same database as another process would have it. */
export async function anotherProcess(fixture: Fixture): Promise<Fixture> {
  const { place, clock } = fixture;
  const opened = await place.open({ clock, isWithoutPoll: true });
  return fixtureOf(place, opened, clock);
}

/** The same through other handles: another process's or, in memory, where nobody else comes, more over one database. */
export async function otherHandles(fixture: Fixture): Promise<Fixture> {
  const { database } = fixture;
  return database.durability === "memory"
    ? { ...fixture, leases: leases(database), queue: queue(database) }
    : anotherProcess(fixture);
}

function fixtureOf(place: Place, opened: Database, clock: CountingClock): Fixture {
  const faults = new Faults(opened);
  const { database } = faults;
  return {
    place,
    faults,
    database,
    clock,
    leases: leases(database),
    queue: queue(database),
  };
}

export async function createSession(database: Database, id: string, generation = 1): Promise<void> {
  await database.write("session", function* () {
    yield* run(sql`
      UPDATE holdfast_session SET deleted_at = 0 WHERE id = ${id} AND deleted_at IS NULL`);
    yield* run(sql`
      INSERT INTO holdfast_session (id, generation, created_at, revision, node_count, user_message_count, active_at)
      VALUES (${id}, ${generation}, 0, 0, 0, 0, 0)`);
  });
}

/** Everything that leases and queues have stored, for tests that nothing changed. */
export function stored(database: Database): Promise<unknown> {
  return database.read("stored", function* () {
    return [
      yield* rows(sql`SELECT * FROM holdfast_session_lease ORDER BY session`),
      yield* rows(sql`SELECT * FROM holdfast_queue_batch ORDER BY key`),
      yield* rows(sql`SELECT * FROM holdfast_queue_item ORDER BY key`),
      yield* rows(sql`SELECT * FROM holdfast_queue_consumed ORDER BY session, source_key`),
      yield* rows(sql`SELECT * FROM holdfast_queue_wake_mark ORDER BY session, process`),
      yield* rows(sql`SELECT * FROM holdfast_queue_completed ORDER BY session, number`),
    ];
  });
}

export const ada = { owner: "ada", incarnation: "first" };
export const adaAgain = { owner: "ada", incarnation: "second" };
export const bob = { owner: "bob", incarnation: "first" };

/** The lease of session "s", which nobody else may hold. */
export async function acquired(
  { leases: store }: Pick<Fixture, "leases">,
  claimant: { readonly owner: string; readonly incarnation: string } = ada,
  lease = 30_000,
): Promise<Lease> {
  const outcome = await store.acquire("s", claimant, { lease });
  if (outcome.kind === "acquired") return outcome.lease;
  throw new Error(`${outcome.holder.owner} holds the lease.`);
}

/** Enqueues one item whose payload is its name, and answers with the batch. */
export async function enqueued(
  { queue: store }: Pick<Fixture, "queue">,
  name: string,
  draft: Partial<BatchDraft> & { readonly class?: "turn" | "command" } = {},
): Promise<QueueBatch<unknown>> {
  const { class: own = "turn", ...rest } = draft;
  const outcome = await store.enqueue("s", {
    items: [{ kind: "input", class: own, payload: name }],
    ...rest,
  });
  if (outcome.kind === "consumed") throw new Error(`${name} was consumed.`);
  return outcome.batch;
}

/** The payloads of the first items: "a b". */
export function named(batches: readonly QueueBatch<unknown>[] | undefined): string {
  return (batches ?? []).map(({ items }) => items[0]?.payload).join(" ");
}

export async function listed(
  { queue: store }: Pick<Fixture, "queue">,
  state: "all" | "pending" = "all",
): Promise<string> {
  return named((await store.list("s", { state })).items);
}

/** A database that believes what a test says about deaths and failures. */
export class Faults {
  readonly database: Database;
  /** Set to make the next writes fail, or hang until it is taken away. */
  failure: Error | Promise<void> | undefined;
  /** Set to make the writes of one operation fail, as if the process had died before. */
  diesBefore: string | undefined;
  /** Told of every write that is committed, before whoever made it is. */
  onCommit: ((operation: string) => void) | undefined;
  writes = 0;
  /** Set to lose the answer of the next write that is committed. */
  losesAnswer = false;
  #underway = 0;
  readonly #dead = new Set<OwnerId>();
  readonly #listeners = new Set<(hint: ChangeHint) => void>();

  constructor(database: Database) {
    const own: Readonly<Record<string | symbol, unknown>> = {
      liveness: async (owner: OwnerId) =>
        this.#dead.has(owner) ? "dead" : database.liveness(owner),
      subscribe: (...given: Parameters<Database["subscribe"]>) => {
        const [listener] = given;
        this.#listeners.add(listener);
        const stop = database.subscribe(...given);
        return () => {
          this.#listeners.delete(listener);
          stop();
        };
      },
      read: (...call: Parameters<Database["read"]>) => this.#counted(database.read(...call)),
      write: (...call: Parameters<Database["write"]>) => this.#counted(write(...call)),
    };
    const write = async (...call: Parameters<Database["write"]>): Promise<unknown> => {
      this.writes += 1;
      if (this.failure instanceof Error) throw this.failure;
      await this.failure;
      const called: unknown = call[0];
      const name = typeof called === "string" ? called : (called as Operation<never, unknown>).name;
      if (name === this.diesBefore) throw new Error("The process died.");
      const answer = await database.write(...call);
      this.onCommit?.(name);
      if (!this.losesAnswer) return answer;
      this.losesAnswer = false;
      throw new HoldfastError("OUTCOME_UNKNOWN", "The answer was lost.");
    };
    this.database = new Proxy(database, {
      get(target, name) {
        const found: unknown = own[name] ?? Reflect.get(target, name, target);
        return typeof found === "function" ? (found.bind(target) as unknown) : found;
      },
    });
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /**
   * Resolves when so many sleep on the clock and no call is under way. A wait
   * with a timeout sleeps on it also while it looks.
   */
  async asleep(clock: { readonly sleepers: number }, count = 1): Promise<void> {
    await until(() => clock.sleepers === count && this.#underway === 0);
  }

  async #counted<T>(call: Promise<T>): Promise<T> {
    this.#underway += 1;
    try {
      return await call;
    } finally {
      this.#underway -= 1;
    }
  }

  /** From now on the death of a process is proven; whoever listens is told. */
  die(owner: OwnerId): void {
    this.#dead.add(owner);
    for (const listener of this.#listeners) listener({ kind: "death", owner });
  }
}

/** Resolves when a condition holds that nothing but the event loop is needed for. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}
