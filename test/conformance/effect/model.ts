import assert from "node:assert/strict";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { OwnerId, Database } from "../../../src/kernel.ts";
import { type EffectClaim, effects, type Effects, type EffectScope } from "../../../src/effects.ts";
import { rejection } from "../backend.ts";
import type { Faults } from "../lease/leased-sessions.ts";

/** What somebody does next. Owners and effects have numbers; an owner keeps its claims, also those it has lost. */
export type Step =
  | {
      readonly do: "claim";
      readonly who: number;
      readonly what: number;
      readonly lease: number;
      /** Shows the holder that was seen last. */
      readonly looks: boolean;
      /** Asks for something else than the others do. */
      readonly isOdd: boolean;
    }
  | { readonly do: "renew"; readonly who: number; readonly lease: number }
  | {
      readonly do: "complete" | "fail" | "release";
      readonly who: number;
    }
  | { readonly do: "execute"; readonly who: number; readonly what: number }
  | { readonly do: "crash"; readonly who: number }
  | { readonly do: "clock"; readonly by: number };

interface Owner {
  process: OwnerId;
  store: Effects;
  claims: EffectClaim[];
}

/** An effect as the model knows it. */
interface Known {
  /** How many claims were given out. */
  fence: number;
  holder:
    | {
        readonly claim: EffectClaim;
        readonly process: OwnerId;
        until: number;
        heardOf: number;
      }
    | undefined;
  settled: { readonly by: string; readonly value: string } | undefined;
}

/**
 * Owners at one scope, and what must be true of it, in the words of the
 * promises: what is recorded never changes, one runs an effect at a time, and
 * only the one who does settles it.
 */
export class EffectModel {
  readonly #scope: EffectScope;
  readonly #faults: Faults;
  readonly #clock = manualClock(1_000);
  readonly #owners: Owner[];
  readonly #known = new Map<number, Known>();
  readonly #dead = new Set<OwnerId>();
  #values = 0;

  constructor(faults: Faults, scope: EffectScope) {
    this.#faults = faults;
    this.#scope = scope;
    this.#owners = [0, 1, 2].map(() => this.#newOwner());
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case "claim":
        return this.#claim(step);
      case "renew":
        return this.#renew(step.who, step.lease);
      case "complete":
      case "fail":
        return this.#settle(step.who, step.do);
      case "release":
        return this.#release(step.who);
      case "execute":
        return this.#execute(step.who, step.what);
      case "crash": {
        const { process } = this.#owner(step.who);
        this.#dead.add(process);
        this.#faults.die(process);
        this.#owners[step.who] = this.#newOwner();
        return;
      }
      case "clock":
        this.#clock.set(Math.max(0, this.#clock.now() + step.by));
        return;
      default:
    }
  }

  /** In the end everybody gets the same of every effect. */
  async agree(): Promise<void> {
    this.#clock.set(this.#clock.now() + 100_000);
    for (const what of this.#known.keys())
      for (const who of [0, 1, 2]) await this.#execute(who, what);
  }

  async #claim(step: Extract<Step, { do: "claim" }>): Promise<void> {
    const { who, what, lease, looks, isOdd } = step;
    const { store, claims, process } = this.#owner(who);
    const known = this.#of(what);
    const args = [this.#scope, `k${what}`, envelope(what, isOdd)] as const;
    const { holder, fence } = known;
    const call =
      looks && holder !== undefined
        ? store.reclaim(...args, { process: holder.process, fence }, { lease })
        : store.claim(...args, { lease });
    const isRecorded = known.fence > 0;
    if (isRecorded && isOdd) {
      assert.equal((await rejection(call)).code, "EFFECT_CONFLICT");
      return;
    }
    // The first one decides what it is.
    if (isOdd) {
      const outcome = await call;
      assert(outcome.kind === "claimed");
      await store.release(outcome.claim);
      await store.forget(this.#scope);
      this.#known.clear();
      return;
    }
    const outcome = await call;
    if (known.settled !== undefined) {
      assert.equal(outcome.kind, known.settled.value.split(" ")[0]);
      return;
    }
    const live = this.#live(known);
    if (live !== undefined && !(looks && this.#dead.has(live.process))) {
      assert.equal(outcome.kind, "busy", "A held effect was given away.");
      return;
    }
    assert(outcome.kind === "claimed", `It is ${outcome.kind}.`);
    this.#hold(known, outcome.claim, process);
    claims.push(outcome.claim);
  }

  #hold(known: Known, claim: EffectClaim, process: OwnerId): void {
    known.fence += 1;
    assert.equal(claim.fence, known.fence, "A fence did not grow by one.");
    const { expiresAt: until } = claim;
    const heardOf = this.#clock.now();
    known.holder = { claim, process, until, heardOf };
  }

  async #renew(who: number, lease: number): Promise<void> {
    const { store, claims } = this.#owner(who);
    const claim = claims.at(-1);
    if (claim === undefined) return;
    const known = this.#of(numberOf(claim));
    const live = this.#live(known);
    const call = store.renew(claim, { lease });
    if (known.settled === undefined && live?.claim.token === claim.token) {
      const { expiresAt } = await call;
      assert(expiresAt >= live.until, "A claim got shorter.");
      live.until = expiresAt;
      live.heardOf = Math.max(live.heardOf, this.#clock.now());
      return;
    }
    assert.equal((await rejection(call)).code, "EFFECT_LEASE_LOST");
    this.#tell(known, claim);
  }

  /** Who was told that its time is over stays told. */
  #tell(known: Known, claim: EffectClaim): void {
    const { holder } = known;
    if (holder?.claim.token === claim.token)
      holder.heardOf = Math.max(holder.heardOf, this.#clock.now());
  }

  async #settle(who: number, how: "complete" | "fail"): Promise<void> {
    const { store, claims } = this.#owner(who);
    const claim = claims.at(-1);
    if (claim === undefined) return;
    const known = this.#of(numberOf(claim));
    const value = this.#newValue(how === "complete" ? "completed" : "failed");
    const call =
      how === "complete" ? store.complete(claim, value) : store.fail(claim, new Error(value));
    const live = this.#live(known);
    if (known.settled === undefined && live?.claim.token === claim.token) {
      await call;
      known.settled = { by: claim.token, value };
    } else if (known.settled?.by === claim.token) {
      // What was recorded first stays, and nobody takes a value for recorded beside a failure.
      const { value: first } = known.settled;
      if (how === "fail" || first.startsWith("completed")) await call;
      else assert.equal((await rejection(call)).message, first);
    } else {
      assert.equal((await rejection(call)).code, "EFFECT_LEASE_LOST");
      this.#tell(known, claim);
    }
  }

  async #release(who: number): Promise<void> {
    const { store, claims } = this.#owner(who);
    const claim = claims.at(-1);
    if (claim === undefined) return;
    const known = this.#of(numberOf(claim));
    const isHolder = known.settled === undefined && known.holder?.claim.token === claim.token;
    assert.equal(await store.release(claim), isHolder && this.#live(known) !== undefined);
    // Also one that has run out: it is over for good.
    if (isHolder) known.holder = undefined;
  }

  async #execute(who: number, what: number): Promise<void> {
    const { store } = this.#owner(who);
    const known = this.#of(what);
    const value = this.#newValue("completed");
    let runs = 0;
    const call = store.execute(
      this.#scope,
      `k${what}`,
      envelope(what, false),
      () => {
        runs += 1;
        return value;
      },
      { timeout: 0 },
    );
    const live = this.#live(known);
    if (known.settled !== undefined) {
      const { value: recorded } = known.settled;
      if (recorded.startsWith("completed")) assert.equal(await call, recorded);
      else assert.equal((await rejection(call)).message, recorded);
    } else if (live !== undefined && !this.#dead.has(live.process))
      assert.equal((await rejection(call)).code, "DEADLINE_EXCEEDED");
    else {
      assert.equal(await call, value);
      assert.equal(runs, 1);
      known.fence += 1;
      known.holder = undefined;
      known.settled = { by: "", value };
      return;
    }
    assert.equal(runs, 0, "What is recorded, or somebody is at, was run.");
  }

  #live(known: Known): Known["holder"] {
    const { holder } = known;
    if (holder === undefined || known.settled !== undefined) return undefined;
    const now = Math.max(this.#clock.now(), holder.heardOf);
    return holder.until > now ? holder : undefined;
  }

  #of(what: number): Known {
    const known = this.#known.get(what) ?? {
      fence: 0,
      holder: undefined,
      settled: undefined,
    };
    this.#known.set(what, known);
    return known;
  }

  #owner(who: number): Owner {
    return this.#owners[who] ?? assert.fail("There is no such owner.");
  }

  #newOwner(): Owner {
    ownersMade += 1;
    const process = `Own_${String(ownersMade).padStart(26, "0")}` as OwnerId;
    const database = ownedBy(this.#faults.database, process);
    const store = effects(database, { clock: this.#clock });
    return { process, store, claims: [] };
  }

  #newValue(kind: string): string {
    this.#values += 1;
    return `${kind} ${this.#values}`;
  }
}

let ownersMade = 0;

function envelope(what: number, isOdd: boolean): { kind: string; input: unknown } {
  return { kind: "tool", input: { what, isOdd } };
}

function numberOf({ replayKey }: EffectClaim): number {
  return Number(replayKey.slice(1));
}

/** The same database as another process would have it open. */
function ownedBy(database: Database, owner: OwnerId): Database {
  return new Proxy(database, {
    get: (target, name) =>
      name === "owner" ? owner : (Reflect.get(target, name, target) as unknown),
  });
}
