import { systemClock } from "../../host/clock.ts";
import { byteTools } from "../../host/bytes.ts";
import { systemEntropy } from "../../host/entropy.ts";
import { sha256Hex } from "../../host/hash.ts";
import { keepAlive, monotonicMs, soon } from "../../host/timers.ts";
import type { ByteTools } from "../../model/values/byte-tools.ts";
import type { Clock } from "../../model/time/clock.ts";
import { durationMs } from "../../model/time/durations.ts";
import type { Duration } from "../../model/time/durations.ts";
import type { Entropy } from "../../model/entropy.ts";
import type { HoldfastError } from "../../model/errors.ts";
import { idSource } from "../../model/ids/id-source.ts";
import { parseOwnerId, type OwnerId } from "../../model/ids/prefixed-id.ts";
import { tracedFailure } from "../../model/traced-failure.ts";
import type { Operation } from "../../sql/operation.ts";
import { isDeathRecorded } from "../../stores/owner/owner.ts";
import { setUp } from "../../stores/app-migration/set-up.ts";
import type {
  AppMigration,
  CallInput,
  CallOutput,
  Callee,
  ChangeHint,
  Database,
  Durability,
  Interest,
  Liveness,
  SetUpReport,
  Stats,
  WaitOptions,
  WriteOptions,
} from "../../sql/database.ts";
import { callable } from "../callable.ts";
import type { Callable } from "../callable.ts";
import { onGiveUp, orGiveUp } from "../give-up.ts";
import { KeepAlives } from "../keep-alives.ts";
import { Meters } from "../meters.ts";
import { checkedWrite, refuseUnknown, refuseUnknownWait } from "../option-checks.ts";
import { databaseClosed } from "../refusals.ts";
import { Subscribers } from "../subscribers.ts";
import { Announcer, notifyInside } from "./announcer.ts";
import { Call } from "./call.ts";
import type { ManyForm } from "./call.ts";
import type { Connected } from "./connect.ts";
import { Dispatcher } from "./dispatcher.ts";
import { Listener } from "./listener.ts";
import { Outages } from "./outages.ts";
import type { Settings } from "./options.ts";
import { holdOwnerLock, isOwnerLockHeld } from "./owner-lock.ts";
import { lockedForSetUp } from "./schema.ts";
import { SchemaWatch } from "./schema-watch.ts";
import type { ServerClock } from "./server-clock.ts";
import { ServiceSession } from "./service-session.ts";
import type { Inquiry } from "./silence/inquiry.ts";
import { within } from "./within.ts";

/** The parts that open.ts has found and created. */
export interface PostgresParts extends Connected {
  readonly settings: Settings;
  readonly durability: Durability;
  readonly clock: Clock;
  /** Undefined when the caller supplied a clock. */
  readonly serverClock: ServerClock | undefined;
  readonly channel: string;
  readonly instance: string;
}

const closeTimeout: Duration = "10s";
/** The time for running calls to finish after the drain timeout, and for the goodbyes. */
const lastCallsMs = 1_000;

const owners = idSource({ clock: systemClock, entropy: systemEntropy });

export class PostgresDatabase implements Database {
  readonly dialect = "postgres";
  readonly entropy: Entropy = systemEntropy;
  readonly sha256Hex: (text: string) => string = sha256Hex;
  readonly bytes: ByteTools = byteTools;
  readonly durability: Durability;
  readonly clock: Clock;
  readonly owner: OwnerId = owners.nextId("Own");
  readonly #schema: string;
  readonly #serverClock: ServerClock | undefined;
  readonly #meters = new Meters();
  readonly #subscribers = new Subscribers();
  readonly #session: ServiceSession;
  readonly #announcer: Announcer;
  readonly #listener: Listener;
  readonly #outages = new Outages();
  readonly #dispatcher: Dispatcher;
  readonly #schemaWatch: SchemaWatch;
  readonly #keepAlives = new KeepAlives();
  readonly #inquiry: Inquiry;
  #closing: Promise<void> | undefined;

  constructor(parts: PostgresParts) {
    const { settings, channel, instance } = parts;
    this.durability = parts.durability;
    this.#inquiry = parts.inquiry;
    this.clock = parts.clock;
    this.#schema = settings.schema;
    this.#session = new ServiceSession(parts.open, {
      onNotify: (payload) => this.#listener.notified(payload),
      onLost: () => this.#listener.connectionLost(),
      // A pooler lends its sessions to others, and would lend the lock with them.
      ...(parts.hasSessions && {
        onOpened: (connection) => holdOwnerLock(connection, this.owner),
      }),
    });
    this.#announcer = new Announcer(this.#session, channel, instance, (tx) =>
      this.#listener.committed(tx),
    );
    this.#listener = new Listener(this.#session, {
      channel,
      instance,
      subscribers: this.#subscribers,
      meters: this.#meters,
      outages: this.#outages,
      pollMs: settings.pollMs,
      // Behind a pooler the notifications would not reach us, and the session would keep listening
      // for others.
      listens: parts.hasSessions,
    });
    const isBatched = settings.notify === "batched";
    this.#dispatcher = new Dispatcher({
      open: (signal) => parts.open({}, signal),
      poolSize: settings.poolSize,
      queueCallsMax: settings.queueCallsMax,
      setFormLanes: settings.setFormLanes,
      meters: this.#meters,
      warn: settings.warn,
      beforeCommit: isBatched ? undefined : notifyInside(channel, instance),
      onCommitted: (tx, changes) => {
        this.#listener.committed(tx);
        if (isBatched) this.#announcer.tell(tx, changes);
        this.#subscribers.tell(changes);
      },
    });
    this.#dispatcher.adopt(parts.connection);
    this.#schemaWatch = new SchemaWatch(this.#session, settings.pollMs, (refusal) =>
      this.#dispatcher.stopWrites(refusal),
    );
    this.#schemaWatch.start();
    this.#serverClock = parts.serverClock;
    this.#serverClock?.keepMeasuring(() => this.#measureTime());
  }

  write<C extends Callee, O>(
    what: C,
    how: CallInput<C, O>,
    options?: WriteOptions,
  ): Promise<CallOutput<C, O>> {
    return this.#call("write", what, how, options) as Promise<CallOutput<C, O>>;
  }

  read<C extends Callee, O>(
    what: C,
    how: CallInput<C, O>,
    options?: WaitOptions,
  ): Promise<CallOutput<C, O>> {
    return this.#call("read", what, how, options) as Promise<CallOutput<C, O>>;
  }

  setUp(
    app: string,
    migrations: readonly AppMigration[],
    options?: WaitOptions,
  ): Promise<SetUpReport> {
    const context = {
      read: this.read.bind(this),
      write: this.write.bind(this),
      clock: this.clock,
      lock: () => lockedForSetUp(this.#schema),
    };
    return setUp(context, app, migrations, options);
  }

  async writable(options?: WaitOptions): Promise<void> {
    if (this.#closing !== undefined) throw databaseClosed();
    refuseUnknownWait(options);
    return orGiveUp("writable()", options, () => this.#dispatcher.room());
  }

  pause(): Promise<void> {
    return new Promise(soon);
  }

  keepAlive(): () => void {
    if (this.#closing !== undefined) throw databaseClosed();
    return this.#keepAlives.hold();
  }

  subscribe(listener: (hint: ChangeHint) => void, interests?: readonly Interest[]): () => void {
    if (this.#closing !== undefined) throw databaseClosed();
    const stop = this.#subscribers.add(listener, interests);
    this.#listener.start();
    return () => {
      stop();
      if (this.#subscribers.isEmpty) this.#listener.stop();
    };
  }

  watchOutages(watcher: (outage: HoldfastError | undefined) => void): () => void {
    // The server is only queried while there is a subscriber.
    const stopListening = this.subscribe(() => undefined, []);
    const stopWatching = this.#outages.watch(watcher);
    return () => {
      stopWatching();
      stopListening();
    };
  }

  /**
   * Judges an owner. Nothing proves a death across machines, so the lease decides. A free lock may
   * belong to a process whose connection broke a moment ago. A held lock shows that the server
   * still sees the process. Only owners of a SQLite file that was moved here are known to be dead,
   * because no process may write there.
   */
  async liveness(given: OwnerId): Promise<Liveness> {
    const owner = parseOwnerId(given);
    if (this.#closing !== undefined) throw databaseClosed();
    if (owner === this.owner) return "alive";
    return this.read("liveness", function* () {
      if (yield* isOwnerLockHeld(owner)) return "alive";
      return (yield* isDeathRecorded({ owner })) ? "dead" : "unknown";
    });
  }

  stats(): Stats {
    return this.#meters.snapshot({
      queueDepth: this.#dispatcher.queueDepth,
      walBytes: 0,
      checkpoints: { passive: 0, restarts: 0, failures: 0 },
      logHeldBack: undefined,
      clockOffsetMs: this.#serverClock?.offsetMs ?? 0,
      peers: { connected: 0, unavailable: undefined, unwatched: undefined },
    });
  }

  async close(options?: { readonly timeout?: Duration }): Promise<void> {
    if (options !== undefined) refuseUnknown(options, ["timeout"]);
    const timeoutMs = durationMs(options?.timeout ?? closeTimeout, "timeout");
    if (this.#closing === undefined) {
      this.#closing = this.#close(timeoutMs);
      this.#subscribers.tellClosing();
    }
    await this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #call(
    access: "read" | "write",
    what: Callee,
    how: unknown,
    options: WriteOptions | undefined,
  ): Promise<unknown> {
    return new Promise((resolve) => {
      if (this.#closing !== undefined) throw databaseClosed();
      const isWrite = access === "write";
      if (!isWrite) refuseUnknownWait(options);
      const asked = isWrite ? checkedWrite(options) : undefined;
      const body = callable(what, how, asked, this.owner);
      const many = isWrite ? manyFor(what, how, body) : undefined;
      const call = new Call(body, access, many, how, resolve, (error) =>
        resolve(tracedFailure(error)),
      );
      call.stopWaiting = onGiveUp(`${access} "${body.name}"`, options, (error) => {
        call.stopWaiting?.();
        if (this.#dispatcher.cancel(call)) call.reject(error);
      });
      try {
        this.#dispatcher.submit(call);
      } catch (error) {
        call.stopWaiting?.();
        call.reject(error);
      }
    });
  }

  #measureTime(): Promise<void> {
    return this.#session.use(async (connection) => this.#serverClock?.measure(connection));
  }

  async #close(timeoutMs: number): Promise<void> {
    const release = keepAlive();
    try {
      await this.#letGo(timeoutMs);
    } finally {
      this.#keepAlives.end();
      release();
    }
  }

  async #letGo(timeoutMs: number): Promise<void> {
    const dispatcher = this.#dispatcher;
    const deadlineMs = monotonicMs() + timeoutMs;
    await within(timeoutMs, dispatcher.idle());
    dispatcher.refuse(databaseClosed());
    if (!(await within(lastCallsMs, dispatcher.idle()))) dispatcher.cut();
    await dispatcher.idle();
    this.#listener.stop();
    this.#schemaWatch.stop();
    this.#serverClock?.stopMeasuring();
    const farewellMs = Math.max(lastCallsMs, deadlineMs - monotonicMs());
    await Promise.all([this.#endService(farewellMs), dispatcher.close(farewellMs)]);
    this.#inquiry.close();
  }

  /** Announces our last commits to other processes, unless the network is silent. */
  async #endService(farewellMs: number): Promise<void> {
    const ended = this.#announcer.close().then(() => this.#session.close());
    if (await within(farewellMs, ended)) return;
    this.#session.discard();
    await ended;
  }
}

/** The set form of an operation, if it accepts this input. */
function manyFor(what: Callee, input: unknown, { isolation }: Callable): ManyForm | undefined {
  if (typeof what === "string" || isolation === "serializable") return undefined;
  const { manyTakes, many } = what as Operation<unknown, unknown>;
  return manyTakes?.(input) === false ? undefined : many;
}
