import type { Clock } from "../../../model/time/clock.ts";
import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import type { Change } from "../../../sql/operation.ts";
import { registerOwner } from "../../../stores/owner/owner.ts";
import type { Meters } from "../../meters.ts";
import type { Subscribers } from "../../subscribers.ts";
import type { Connection } from "../write/connection.ts";
import type { Calls } from "../database.ts";
import type { Driver } from "../drivers/drivers.ts";
import type { Flusher } from "../write/flusher.ts";
import type { GroupCommit } from "../write/group-commit.ts";
import { ForeignCommits } from "./foreign-commits.ts";
import type { FolderWatch } from "./foreign-commits.ts";
import { Neighbours } from "./neighbours.ts";
import { OwnerLocks } from "./owner-locks.ts";
import { Peers } from "./peers.ts";

export interface NeighbourhoodParts {
  readonly driver: Driver;
  readonly owner: OwnerId;
  readonly clock: Clock;
  readonly meters: Meters;
  readonly subscribers: Subscribers;
  readonly flusher: Flusher;
  readonly isReadOnly: boolean;
  readonly socketBase: string | undefined;
  readonly watch: FolderWatch | undefined;
}

/** The part of our writer that peers may use. */
type Writer = Pick<GroupCommit, "hold" | "retryNow">;

/**
 * Assembles everything that a database needs to know about other processes on its file.
 * `connection` is the writer's: its `data_version` moves with every commit but its own.
 */
export class Neighbourhood {
  readonly #parts: NeighbourhoodParts;
  readonly #locks: OwnerLocks;
  readonly #peers: Peers;
  readonly #foreign: ForeignCommits;
  #neighbours: Neighbours | undefined;
  #writer: Writer | undefined;
  #isRegistered = false;

  constructor(path: string, connection: Connection, parts: NeighbourhoodParts) {
    this.#parts = parts;
    this.#locks = new OwnerLocks(parts.driver, path);
    this.#peers = new Peers(
      path,
      parts.owner,
      {
        onRing: (changes) => this.#neighbours?.rang(changes),
        onFree: () => this.#writer?.retryNow() ?? false,
        onHold: () => this.#writer?.hold() ?? (() => undefined),
        onGone: (peer) => this.#neighbours?.look(peer),
      },
      parts.socketBase,
    );
    this.#foreign = new ForeignCommits(
      path,
      {
        version: () => versionOf(connection),
        onUntold: () => this.#tellUnknownWhenDurable(),
        onTick: () => {
          this.#neighbours?.lookAround();
          // A process that only waits makes no flush that would notice the missing file.
          parts.flusher.lookForFile();
        },
      },
      parts.meters,
      parts.watch,
    );
  }

  join(calls: Calls): Neighbours {
    const { owner, clock, subscribers, isReadOnly } = this.#parts;
    this.#neighbours = new Neighbours(
      {
        owner,
        locks: this.#locks,
        peers: this.#peers,
        foreign: this.#foreign,
        subscribers,
        clock,
        isReadOnly,
      },
      calls,
    );
    if (this.#isRegistered) this.#neighbours.registered();
    return this.#neighbours;
  }

  /** Sets the writer whose turns the peers and we arrange. */
  arrange(writer: Writer): void {
    this.#writer = writer;
  }

  /** Runs `action` while no reachable process starts a batch. */
  async whileHeld(action: () => Promise<void>): Promise<void> {
    this.#peers.hold(true);
    try {
      await action();
    } finally {
      this.#peers.hold(false);
    }
  }

  /** Asks the peers to announce when the lock is free. @returns whether any of them will. */
  waitForLock(): boolean {
    return this.#peers.wait();
  }

  /** Announces that the lock is free. @returns whether any process waited for it. */
  freeLock(): boolean {
    return this.#peers.free();
  }

  ring(changes: readonly Change[]): void {
    this.#peers.ring(changes);
  }

  /** Records that the thread made a commit of ours, which looks like a foreign one. */
  explained(): void {
    this.#foreign.explained();
  }

  /**
   * Called when the thread has registered this process as an owner. Peers are notified at once;
   * otherwise they would take it for a commit of a silent process. A read of it still waits for a
   * flush.
   */
  registered(): void {
    this.explained();
    this.ring([{ operation: registerOwner.name, key: this.#parts.owner }]);
    this.#isRegistered = true;
    this.#neighbours?.registered();
  }

  /** Reports a foreign commit only once it is durable, since no subscriber may act on it before. */
  #tellUnknownWhenDurable(): void {
    const { flusher, subscribers } = this.#parts;
    flusher.flush().then(
      () => subscribers.tellUnknown(),
      // A failed flush stops the database. No subscriber is notified of the changes that it covered.
      () => undefined,
    );
  }
}

/**
 * The current `data_version`. Undefined when another connection is in the way: then there is
 * nothing to compare.
 */
function versionOf(connection: Connection): unknown {
  try {
    return connection.dataVersion();
  } catch {
    return undefined;
  }
}
