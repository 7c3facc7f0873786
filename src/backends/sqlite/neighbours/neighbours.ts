import { sleep } from "../../../host/timers.ts";
import type { Clock } from "../../../model/time/clock.ts";
import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import type { Change } from "../../../sql/operation.ts";
import { forgetOwner, isDeathRecorded, recordDeath } from "../../../stores/owner/owner.ts";
import type { Liveness, Stats } from "../../../sql/database.ts";
import type { Subscribers } from "../../subscribers.ts";
import type { Calls } from "../database.ts";
import type { ForeignCommits } from "./foreign-commits.ts";
import type { OwnerLocks } from "./owner-locks.ts";
import type { Peers } from "./peers.ts";

export interface NeighbourParts {
  readonly owner: OwnerId;
  readonly locks: OwnerLocks;
  readonly peers: Peers;
  readonly foreign: ForeignCommits;
  readonly subscribers: Subscribers;
  readonly clock: Clock;
  readonly isReadOnly: boolean;
}

/**
 * Delays of checks after a connection closed, because the kernel frees a process's memory before
 * its locks.
 */
const lookAgainMs: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];

/**
 * The other processes that have the file open: their ids, their liveness, and their changes.
 */
export class Neighbours {
  readonly #parts: NeighbourParts;
  readonly #calls: Calls;
  readonly #looking = new Map<OwnerId, Promise<void>>();
  readonly #dead = new Set<OwnerId>();
  #isClosed = false;
  #isRegistered = false;
  #hasLeft = false;

  constructor(parts: NeighbourParts, calls: Calls) {
    this.#parts = parts;
    this.#calls = calls;
  }

  /** Takes this process's lock, connects to the others, and cleans up after dead ones. */
  async join(): Promise<void> {
    const { owner, locks, peers, isReadOnly } = this.#parts;
    if (!isReadOnly) locks.hold(owner);
    await peers.start();
    await this.#clearUp();
  }

  /** Called when this process has been registered as an owner. */
  registered(): void {
    this.#isRegistered = true;
  }

  rang(changes: readonly Change[] | undefined): void {
    const { foreign, subscribers } = this.#parts;
    foreign.explained();
    if (changes === undefined) subscribers.tellUnknown();
    else subscribers.tell(changes);
  }

  /** Checks a peer whose connection closed until it is known whether it died. */
  look(peer: OwnerId): void {
    if (this.#isClosed || this.#looking.has(peer) || this.#dead.has(peer)) return;
    const looking = this.#lookUntilSure(peer).finally(() => this.#looking.delete(peer));
    this.#looking.set(peer, looking);
  }

  /** Checks the owners that no connection reports: the unreachable ones. */
  lookAround(): void {
    const { locks, peers, owner } = this.#parts;
    const reached = new Set(peers.connected);
    for (const other of locks.owners())
      if (other !== owner && !reached.has(other) && locks.judge(other) === "dead") this.look(other);
  }

  async liveness(owner: OwnerId): Promise<Liveness> {
    const { locks } = this.#parts;
    if (this.#dead.has(owner)) return "dead";
    if (await this.#calls.read(isDeathRecorded, { owner })) return "dead";
    const judged = locks.judge(owner);
    if (judged === "dead") await this.#died(owner);
    return judged;
  }

  /** Called when the first subscriber comes and the last one goes. */
  listen(isListening: boolean): void {
    const { foreign, peers } = this.#parts;
    if (isListening) foreign.start();
    else foreign.stop();
    peers.listen(isListening);
  }

  stats(): Stats["peers"] {
    const { peers, foreign } = this.#parts;
    return {
      connected: peers.connected.length,
      unavailable: peers.unavailable,
      unwatched: foreign.unwatched,
    };
  }

  /** Leaves in order. This owner has itself released everything it held. */
  async leave(): Promise<void> {
    const { owner, isReadOnly } = this.#parts;
    if (isReadOnly) return;
    // After a recent death, no other process may be left to remove the dead peer's socket.
    await this.#clearUp().catch(() => undefined);
    if (this.#isRegistered) await this.#calls.write(forgetOwner, { owner });
    this.#hasLeft = true;
  }

  /**
   * Closes sockets and watch, and releases the lock. Without `leave` other processes take it for a
   * death.
   */
  async letGo(): Promise<void> {
    const { owner, locks, peers, foreign, isReadOnly } = this.#parts;
    this.#isClosed = true;
    foreign.stop();
    await peers.close({ sayBye: this.#hasLeft || isReadOnly });
    await Promise.allSettled(this.#looking.values());
    // A process that could not leave in order keeps its file, so that others can prove its end.
    if (this.#hasLeft) locks.remove(owner);
    locks.release();
  }

  async #clearUp(): Promise<void> {
    const { owner, locks } = this.#parts;
    for (const other of locks.owners())
      if (other !== owner && locks.judge(other) === "dead") await this.#died(other);
  }

  async #lookUntilSure(peer: OwnerId): Promise<void> {
    for (const waitMs of [0, ...lookAgainMs]) {
      if (waitMs > 0) await sleep(waitMs);
      if (this.#isClosed) return;
      // Our call may fail, for example because of a lock; then the loop checks again.
      if (await this.#isSettled(peer).catch(() => false)) return;
    }
  }

  /** Judges a peer. @returns whether there is nothing more to find out about it. */
  async #isSettled(peer: OwnerId): Promise<boolean> {
    const { locks, peers } = this.#parts;
    switch (locks.judge(peer)) {
      case "dead":
        await this.#died(peer);
        return true;
      case "unknown":
        // Its file is gone: it left in order, or its death was handled.
        if (await this.#calls.read(isDeathRecorded, { owner: peer })) this.#announce(peer);
        // Or its lock was on another file, which was removed and whose inode number this file now
        // has.
        await peers.reconnect(peer);
        if (!peers.connected.includes(peer)) peers.forget(peer);
        return true;
      default:
        await peers.reconnect(peer);
        return peers.connected.includes(peer);
    }
  }

  /**
   * Records a proven death, then removes the leftovers of the dead process, then tells subscribers.
   */
  async #died(owner: OwnerId): Promise<void> {
    const { locks, peers, clock, isReadOnly } = this.#parts;
    if (!isReadOnly) {
      await this.#calls.write(recordDeath, { owner, now: clock.now() });
      locks.remove(owner);
    }
    peers.forget(owner);
    this.#announce(owner);
  }

  #announce(owner: OwnerId): void {
    if (this.#dead.has(owner)) return;
    this.#dead.add(owner);
    this.#parts.subscribers.tellDeath(owner);
  }
}
