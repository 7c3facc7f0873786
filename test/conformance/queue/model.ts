import assert from "node:assert/strict";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { OwnerId } from "../../../src/kernel.ts";
import {
  type Lease,
  leases,
  type QueueClaimRef,
  queue,
  sessions,
  type TurnOutcome,
} from "../../../src/sessions.ts";
import { createSession } from "../lease/leased-sessions.ts";
import type { Faults } from "../lease/leased-sessions.ts";

/** What somebody does next. Owners have numbers; each keeps what it got, also when it has lost it. */
export type Step =
  | { readonly do: "acquire"; readonly who: number; readonly lease: number }
  | { readonly do: "reclaim"; readonly who: number; readonly lease: number }
  | { readonly do: "renew"; readonly who: number; readonly lease: number }
  | { readonly do: "release" | "crash"; readonly who: number }
  | {
      readonly do: "enqueue";
      readonly class: "turn" | "command";
      readonly slot: "join" | "exclusive";
      readonly source: number | null;
      readonly delay: number;
    }
  | { readonly do: "claim"; readonly who: number; readonly max: number }
  | { readonly do: "command" | "abandon" | "complete"; readonly who: number }
  | { readonly do: "cancel"; readonly which: number }
  | { readonly do: "clock"; readonly by: number };

interface Owner {
  process: OwnerId;
  lives: number;
  lease: Lease | undefined;
  claims: { readonly ref: QueueClaimRef; readonly fence: number }[];
}

interface Batch {
  readonly id: string;
  readonly availableAt: number;
  fate: "queued" | "consumed" | "cancelled";
  /** The last claim that took it, with the fence of that time. */
  claim: { readonly token: string; readonly fence: number } | undefined;
}

/** The lease as the model knows it: who has it, and until when at least. */
interface Held {
  readonly token: string;
  readonly who: number;
  readonly lives: number;
  readonly fence: number;
  readonly process: OwnerId;
  until: number;
  heardOf: number;
}

/**
 * Owners at one session, and what must be true of it, in the words of the
 * promises: no batch is consumed twice, none gets lost, one owner at a time,
 * fences only grow, and the revision grows by one with each commit.
 */
export class QueueModel {
  readonly #session: string;
  readonly #faults: Faults;
  readonly #clock = manualClock(1_000);
  readonly #leases;
  readonly #queue;
  readonly #sessions;
  readonly #owners: Owner[];
  readonly #batches: Batch[] = [];
  readonly #sources = new Map<number, Batch>();
  #processes = 0;
  #highestFence = 0;
  #revision = 0;
  #turns = 0;
  #held: Held | undefined;

  static async create(faults: Faults, session: string): Promise<QueueModel> {
    await createSession(faults.database, session);
    return new QueueModel(faults, session);
  }

  private constructor(faults: Faults, session: string) {
    this.#faults = faults;
    this.#session = session;
    const { database } = faults;
    this.#leases = leases(database, { clock: this.#clock });
    this.#queue = queue(database, { clock: this.#clock });
    this.#sessions = sessions(database, { clock: this.#clock });
    this.#owners = [0, 1, 2].map(() => ({
      process: this.#newProcess(),
      lives: 1,
      lease: undefined,
      claims: [],
    }));
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case "acquire":
      case "reclaim":
        await this.#acquire(step.who, step.lease, step.do === "reclaim");
        break;
      case "renew":
        await this.#renew(step.who, step.lease);
        break;
      case "release":
        await this.#release(step.who);
        break;
      case "crash":
        this.#crash(step.who);
        break;
      case "enqueue":
        await this.#enqueue(step);
        break;
      case "claim":
        await this.#claim(step.who, step.max);
        break;
      case "command":
        await this.#claim(step.who, undefined);
        break;
      case "abandon":
        await this.#abandon(step.who);
        break;
      case "complete":
        await this.#complete(step.who);
        break;
      case "cancel":
        await this.#cancel(step.which);
        break;
      case "clock":
        this.#clock.set(Math.max(0, this.#clock.now() + step.by));
        break;
      default:
    }
    await this.#nothingIsLost();
  }

  /** Somebody works off what is left: each batch comes once, and then there is nothing. */
  async drain(): Promise<void> {
    this.#clock.set(this.#clock.now() + 100_000);
    await this.#acquire(0, 100_000, false);
    for (let left = -1; left !== this.#queued().length;) {
      left = this.#queued().length;
      await this.#claim(0, undefined);
      await this.#claim(0, 2);
      while (this.#owner(0).claims.length > 0) await this.#complete(0);
    }
    assert.deepEqual(this.#queued(), []);
    await this.#nothingIsLost();
  }

  async #acquire(who: number, lease: number, reclaims: boolean): Promise<void> {
    const owner = this.#owner(who);
    const { process } = owner;
    const claimant = {
      owner: `${who}`,
      incarnation: `${owner.lives}`,
      process,
    };
    const seen = this.#held ?? { fence: 0, process: this.#owner(0).process };
    const before = this.#live();
    const isDead = before !== undefined && this.#isDead(before);
    const outcome = reclaims
      ? await this.#leases.reclaim(this.#session, claimant, seen, { lease })
      : await this.#leases.acquire(this.#session, claimant, { lease });
    const isOwn = before?.who === who && before.lives === owner.lives;
    if (before !== undefined && !isOwn && !(reclaims && isDead)) {
      assert(outcome.kind === "busy", "A held lease was given away.");
      assert.equal(outcome.holder.fence, before.fence);
      return;
    }
    assert(outcome.kind === "acquired", "A free lease was busy.");
    owner.lease = outcome.lease;
    const { token, fence, expiresAt: until } = outcome.lease;
    if (before !== undefined && isOwn) {
      assert.equal(token, before.token);
      assert.equal(fence, before.fence);
      this.#heard(before, until);
      return;
    }
    assert(fence > this.#highestFence, "A fence did not grow.");
    this.#highestFence = fence;
    const heardOf = this.#clock.now();
    const { lives } = owner;
    this.#held = { token, who, lives, fence, process, until, heardOf };
  }

  async #renew(who: number, leaseMs: number): Promise<void> {
    const { lease } = this.#owner(who);
    if (lease === undefined) return;
    const before = this.#live();
    const isHolder = before?.token === lease.token;
    const renewed = await attempt(this.#leases.renew(lease, { lease: leaseMs }));
    if (isHolder) {
      this.#owner(who).lease = renewed.value;
      this.#heard(before, renewed.value?.expiresAt ?? 0);
    } else {
      assert.equal(renewed.code, "LEASE_LOST");
      this.#foundExpired(lease);
    }
  }

  /** Whoever shows a lease that has run out is told so, and no clock that is set back makes it count again. It can still be given back. */
  #foundExpired(lease: Lease): void {
    const held = this.#held;
    if (held?.token === lease.token) held.heardOf = Math.max(held.heardOf, this.#clock.now());
  }

  /** Never shorter than before, whatever the clock did. */
  #heard(held: Held, until: number): void {
    assert(until >= held.until, "A lease got shorter.");
    held.until = until;
    held.heardOf = Math.max(held.heardOf, this.#clock.now());
  }

  async #release(who: number): Promise<void> {
    const { lease } = this.#owner(who);
    if (lease === undefined) return;
    const isHolder = this.#held?.token === lease.token;
    assert.equal(await this.#leases.release(lease), isHolder);
    if (isHolder) this.#held = undefined;
  }

  /** It forgets everything, and comes back as another process. */
  #crash(who: number): void {
    const owner = this.#owner(who);
    this.#faults.die(owner.process);
    this.#owners[who] = {
      process: this.#newProcess(),
      lives: owner.lives + 1,
      lease: undefined,
      claims: [],
    };
  }

  async #enqueue(step: Extract<Step, { do: "enqueue" }>): Promise<void> {
    const { source, delay } = step;
    const availableAt = delay === 0 ? 0 : this.#clock.now() + delay;
    const outcome = await this.#queue.enqueue(this.#session, {
      items: [{ kind: "k", class: step.class, payload: source }],
      slot: step.slot,
      availableAt,
      ...(source !== null && { source: `source ${source}` }),
    });
    const earlier = source === null ? undefined : this.#sources.get(source);
    if (earlier !== undefined) {
      const expected = earlier.fate === "queued" ? "duplicate" : "consumed";
      assert.equal(outcome.kind, expected);
      if (outcome.kind !== "consumed") assert.equal(outcome.batch.id, earlier.id);
      return;
    }
    assert(outcome.kind === "queued", "A new batch was refused.");
    const { id } = outcome.batch;
    const batch: Batch = { id, availableAt, fate: "queued", claim: undefined };
    this.#batches.push(batch);
    if (source !== null) this.#sources.set(source, batch);
  }

  async #claim(who: number, max: number | undefined): Promise<void> {
    const { lease, claims } = this.#owner(who);
    if (lease === undefined) return;
    const live = this.#live();
    const claimed = await attempt(
      max === undefined
        ? this.#queue.claimCommand(lease)
        : this.#queue.claimTurn(lease, { limit: max }),
    );
    if (live?.token !== lease.token) {
      assert.equal(claimed.code, "LEASE_LOST");
      return this.#foundExpired(lease);
    }
    assert.equal(claimed.code, undefined);
    const work = claimed.value;
    if (work === undefined) return;
    for (const { id } of work.batches) {
      const batch = this.#batches.find((one) => one.id === id);
      assert(batch?.fate === "queued", "Something was claimed that is gone.");
      assert.notEqual(batch.claim?.fence, live.fence);
      assert(batch.availableAt <= this.#clock.now(), "It came too early.");
      batch.claim = { token: work.ref.claim, fence: work.fence };
    }
    claims.push(work);
  }

  async #abandon(who: number): Promise<void> {
    const claim = this.#owner(who).claims[0];
    if (claim === undefined) return;
    // It stays in the hands of its claimant, who may still try to complete it.
    const own = this.#taken(claim.ref);
    const count = await this.#queue.abandon(this.#session, claim.ref);
    assert.equal(count, own.length);
    for (const batch of own) batch.claim = undefined;
  }

  async #complete(who: number): Promise<void> {
    const { lease, claims } = this.#owner(who);
    const claim = claims.shift();
    if (claim === undefined || lease === undefined) return;
    const own = this.#taken(claim.ref);
    const isHolder = this.#live()?.token === lease.token;
    const isWhole = own.length === claim.ref.batches.length && claim.fence === lease.fence;
    const turn = {
      turn: `turn ${(this.#turns += 1)}`,
      fence: lease,
      claims: [claim.ref],
      nodes: [{ kind: "note", payload: this.#turns }],
    };
    const commit = (): Promise<TurnOutcome> => this.#sessions.commit(lease.session, turn);
    const completed = await attempt(commit());
    const expected = isWhole ? undefined : "CLAIM_LOST";
    assert.equal(completed.code, isHolder ? expected : "LEASE_LOST");
    if (completed.code === "LEASE_LOST") this.#foundExpired(lease);
    if (completed.code !== undefined) return;
    this.#revision += 1;
    assert.equal(completed.value?.revision, this.#revision);
    // Whoever did not hear the answer asks again, and changes nothing.
    const repeated = await commit();
    assert.deepEqual(repeated, { ...completed.value, kind: "replayed" });
    for (const batch of own) {
      assert.equal(batch.fate, "queued");
      batch.fate = "consumed";
    }
  }

  async #cancel(which: number): Promise<void> {
    const batch = this.#batches[which % Math.max(1, this.#batches.length)];
    if (batch === undefined) return;
    const isClaimed = batch.claim !== undefined && batch.claim.fence === this.#live()?.fence;
    const cancelled = await this.#queue.cancel(this.#session, batch.id);
    const expected = batch.fate === "queued" && !isClaimed ? batch.id : undefined;
    assert.equal(cancelled?.id, expected);
    if (cancelled !== undefined) batch.fate = "cancelled";
  }

  async #nothingIsLost(): Promise<void> {
    const { items: batches } = await this.#queue.list(this.#session);
    assert.deepEqual(
      batches.map(({ id }) => id),
      this.#queued().map(({ id }) => id),
    );
    const head = await this.#sessions.head(this.#session);
    assert.equal(head.revision, this.#revision);
    assert.equal(head.nodeCount, this.#revision);
  }

  #queued(): readonly Batch[] {
    return this.#batches.filter(({ fate }) => fate === "queued");
  }

  #taken({ claim }: QueueClaimRef): readonly Batch[] {
    return this.#queued().filter((batch) => batch.claim?.token === claim);
  }

  #live(): Held | undefined {
    const now = this.#clock.now();
    return this.#held && this.#held.until > Math.max(now, this.#held.heardOf)
      ? this.#held
      : undefined;
  }

  #isDead({ process }: Held): boolean {
    return this.#owners.every((owner) => owner.process !== process);
  }

  #owner(who: number): Owner {
    const owner = this.#owners[who];
    if (owner === undefined) throw new Error(`There is no owner ${who}.`);
    return owner;
  }

  #newProcess(): OwnerId {
    this.#processes += 1;
    const number = `${this.#session}${this.#processes}`.padStart(26, "0");
    return `Own_${number}` as OwnerId;
  }
}

/** What came of it: a value, or the code of the error. */
async function attempt<T>(
  promise: Promise<T>,
): Promise<{ readonly value?: T; readonly code?: string }> {
  try {
    return { value: await promise };
  } catch (error) {
    return {
      code: (error as { readonly code?: string }).code ?? String(error),
    };
  }
}
