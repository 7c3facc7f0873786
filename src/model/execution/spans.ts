import type { LoggedEvent, LoggedResponse } from "./event.ts";
import type { Span, SpanAttempt } from "./span.ts";
import { externalFunction } from "./open-waits.ts";
import { isRan } from "./ran.ts";

/**
 * Returns the bars of a run in the order of their beginnings. A log that was continued begins at
 * its last start. A bar that was open at the end of the run ends there, without an outcome. Events
 * that are unknown or damaged are skipped.
 */
export function spansOf(
  events: readonly LoggedEvent<unknown>[],
  responses: readonly LoggedResponse<unknown>[],
): readonly Span[] {
  const sound = (events as readonly unknown[]).filter(isSoundEvent);
  const start = sound.findLastIndex(({ event }) => event.kind === "continued");
  const reading = new Reading(
    roleIn(sound),
    (responses as readonly unknown[]).filter(isSoundResponse),
  );
  for (const logged of sound.slice(Math.max(start, 0))) reading.read(logged);
  return reading.finish();
}

type Fields = Readonly<Record<string, unknown>>;

interface SoundEvent {
  readonly version: number;
  readonly at: number;
  readonly event: Fields & { readonly kind: string };
}

interface SoundResponse {
  readonly seq: number;
  readonly at: number;
  readonly response: Fields & { readonly kind: string };
}

/** A bar that may still change. */
interface Open {
  readonly kind: Span["kind"];
  readonly version: number;
  readonly began: number;
  ended: number | null;
  outcome?: unknown;
  readonly name?: string;
  readonly attempts?: SpanAttempt[];
}

type OpenFact = Omit<Open, "version" | "began" | "ended"> & Fields;

/** The bars so far, and those that are open, by what will end them. */
class Reading {
  readonly #isActivity: boolean;
  readonly #responses: readonly SoundResponse[];
  #answered = 0;
  readonly #bars: Open[] = [];
  readonly #open = new Map<string, Open>();
  #failures = 0;
  #holder: string | undefined;
  #lastAt = 0;

  constructor(role: unknown, responses: readonly SoundResponse[]) {
    this.#isActivity = role === "activity";
    this.#responses = responses.toSorted((a, b) => a.seq - b.seq);
  }

  read(logged: SoundEvent): void {
    const { event, at } = logged;
    if (isCount(event["seen"])) this.#answer(event["seen"]);
    if (!this.#readCall(logged)) this.#readControl(logged);
    this.#lastAt = at;
  }

  finish(): readonly Span[] {
    this.#answer(Number.POSITIVE_INFINITY);
    const bars = this.#bars as unknown as readonly Span[];
    return bars.toSorted((a, b) => a.began - b.began || a.version - b.version);
  }

  #begin(key: string, { version, at }: SoundEvent, fact: OpenFact, began: number = at): Open {
    const bar: Open = { version, began, ended: null, ...fact };
    this.#bars.push(bar);
    this.#open.set(key, bar);
    return bar;
  }

  #end(key: string, at: number, outcome?: unknown): void {
    const bar = this.#open.get(key);
    if (bar === undefined) return;
    this.#open.delete(key);
    bar.ended = Math.max(bar.began, at);
    if (outcome !== undefined) bar.outcome = outcome;
  }

  #endAll(at: number, isMeant: (key: string) => boolean = () => true): void {
    for (const key of this.#open.keys()) if (isMeant(key)) this.#end(key, at);
  }

  /** Ends what the responses up to a number answer. A signal goes to the oldest call that waits. */
  #answer(upTo: number): void {
    for (;;) {
      const next = this.#responses[this.#answered];
      if (next === undefined || next.seq > upTo) return;
      this.#answered += 1;
      const { at, response } = next;
      const { kind, child, delay, signal, outcome, resultKind } = response;
      if (kind === "child" && isText(child)) this.#end(`child ${child}`, at, resultKind);
      if (kind === "delay" && isText(delay)) this.#end(`delay ${delay}`, at, outcome);
      if (kind === "signal") this.#receive(signal, at);
    }
  }

  #receive(signal: unknown, at: number): void {
    for (const [key, { kind, name }] of this.#open)
      if (kind === "receive" && name === signal) return this.#end(key, at, "received");
  }

  /** False for an event that no call made. */
  #readCall(logged: SoundEvent): boolean {
    const { event, at } = logged;
    const { kind, call, name, signal, child, delay, function: called } = event;
    if (!isCount(call)) return false;
    switch (kind) {
      case "stepBegan":
        if (isText(name)) this.#announce(logged, call, name);
        return true;
      case "stepFinished":
      case "transactionFinished":
      case "stepAttemptFailed":
        if (isText(name)) this.#attempt(logged, call, name);
        return true;
      case "delayRequested":
        if (isText(delay) && isCount(event["expiresAt"]))
          this.#begin(`delay ${delay}`, logged, {
            kind: "sleep",
            call,
            until: event["expiresAt"],
            outcome: null,
          });
        return true;
      case "receiveRequested":
        if (isText(signal)) {
          const until = isCount(event["expiresAt"]) ? event["expiresAt"] : null;
          this.#begin(`receive ${call}`, logged, {
            kind: "receive",
            call,
            name: signal,
            until,
            outcome: null,
          });
        }
        return true;
      case "receiveTimedOut":
        this.#end(`receive ${call}`, at, "timedOut");
        return true;
      case "cancellationDelivered":
        // The code's waits reject here. Waits for children reject once those have ended.
        this.#endAll(at, (key) => isWait(this.#open.get(key)));
        return true;
      case "childRequested":
        if (isText(child) && isText(called))
          this.#begin(
            `child ${child}`,
            logged,
            called === externalFunction
              ? { kind: "external", call, child, outcome: null }
              : { kind: "child", call, name: called, child, outcome: null },
          );
        return true;
      default:
        return true;
    }
  }

  #attempt(logged: SoundEvent, call: number, name: string): void {
    const { event, at } = logged;
    const { kind, ran } = event;
    const [began, ended] = isRan(ran) ? [at + ran[0], at + ran[1]] : [at, at];
    const key = `step ${call}`;
    const isTransaction = kind === "transactionFinished" || event["isTransaction"] === true;
    const bar =
      this.#open.get(key) ??
      this.#begin(
        key,
        logged,
        { kind: isTransaction ? "transaction" : "step", call, name, outcome: null, attempts: [] },
        began,
      );
    const isFailed = kind === "stepAttemptFailed" || event["outcome"] !== "completed";
    const outcome = isFailed ? "failed" : "completed";
    const last = bar.attempts?.at(-1);
    const next = last === undefined ? 1 : isAnnounced(last) ? last.attempt : last.attempt + 1;
    const number = isCount(event["attempt"]) ? event["attempt"] : next;
    // The end of an announced attempt says when its body began.
    if (last?.ended === null) bar.attempts?.pop();
    bar.attempts?.push({ attempt: number, began, ended, outcome });
    if (kind !== "stepAttemptFailed") this.#end(key, ended, outcome);
  }

  #announce(logged: SoundEvent, call: number, name: string): void {
    const { event, at } = logged;
    const key = `step ${call}`;
    const bar =
      this.#open.get(key) ??
      this.#begin(key, logged, { kind: "step", call, name, outcome: null, attempts: [] });
    const before = bar.attempts?.at(-1)?.attempt ?? 0;
    const number = isCount(event["attempt"]) ? event["attempt"] : before + 1;
    bar.attempts?.push({ attempt: number, began: at, ended: null, outcome: null });
  }

  /** Ends the announced attempts whose bodies are gone. */
  #endAnnounced(at: number, outcome: "died" | null): void {
    for (const { attempts } of this.#open.values()) {
      const last = attempts?.at(-1);
      if (last?.ended !== null) continue;
      attempts?.splice(-1, 1, { ...last, ended: Math.max(last.began, at), outcome });
    }
  }

  #readControl(logged: SoundEvent): void {
    const { event, at } = logged;
    switch (event.kind) {
      case "created":
        if (event["isPaused"] === true) this.#begin(interruption, logged, { kind: "paused" });
        return;
      case "locked":
        this.#end(death, at);
        return this.#isActivity ? this.#lock(logged) : undefined;
      case "unlocked":
        this.#endAnnounced(at, null);
        return this.#end(attempt, at, "released");
      case "attemptFailed":
        this.#failures += 1;
        return this.#end(attempt, at, "failed");
      case "attemptTimedOut":
      case "ownerDied":
        return this.#lose(logged);
      case "paused":
      case "cancellationRequested":
      case "parked":
        return this.#interrupt(logged);
      case "unpaused":
      case "unparked":
        return this.#end(interruption, at);
      case "forked":
        // What the copied run was in the middle of is not the copy's.
        return this.#endAll(this.#lastAt, (key) => [attempt, death, interruption].includes(key));
      case "finished":
        this.#answer(Number.POSITIVE_INFINITY);
        this.#end(attempt, at, event["resultKind"]);
        this.#endAnnounced(at, null);
        return this.#endAll(at);
    }
  }

  /** A lock of the same holder again is an extension. */
  #lock(logged: SoundEvent): void {
    const holder = holderIn(logged.event["holder"]);
    const isHeld = holder !== undefined && holder === this.#holder;
    if (isHeld && this.#open.has(attempt)) return;
    this.#holder = holder;
    this.#end(attempt, logged.at);
    this.#begin(attempt, logged, { kind: "attempt", attempt: this.#failures + 1, outcome: null });
  }

  #lose(logged: SoundEvent): void {
    const { event, at } = logged;
    const isDeath = event.kind === "ownerDied";
    if (event["counts"] !== "nothing") this.#failures += 1;
    this.#end(attempt, at, isDeath ? "died" : "timedOut");
    this.#endAnnounced(at, "died");
    this.#end(death, at);
    // An attempt without a renewal in time has ended; its process may live.
    if (this.#isActivity && !isDeath) return;
    this.#begin(death, logged, { kind: "death", outcome: isDeath ? "ownerDied" : "leaseExpired" });
  }

  #interrupt(logged: SoundEvent): void {
    const { event, at } = logged;
    this.#end(interruption, at);
    if (event.kind === "parked") {
      // A run that is parked for its deaths has no next worker.
      this.#end(death, at);
      const outcome = isText(event["code"]) ? event["code"] : null;
      this.#begin(interruption, logged, { kind: "parked", outcome });
    } else
      this.#begin(interruption, logged, {
        kind: event.kind === "paused" ? "paused" : "cancelling",
      });
  }
}

/** True for an attempt that may be the same as the next one: it began, and has no outcome. */
function isAnnounced({ outcome }: SpanAttempt): boolean {
  return outcome === null || outcome === "died";
}

function isWait(bar: Open | undefined): boolean {
  return bar?.kind === "sleep" || bar?.kind === "receive" || bar?.kind === "external";
}

// The one bar of its kind that can be open.
const attempt = "attempt";
const death = "death";
const interruption = "interruption";

function roleIn(events: readonly SoundEvent[]): unknown {
  return events.find(({ event }) => event.kind === "created")?.event["role"];
}

function holderIn(holder: unknown): string | undefined {
  const { executor, run } = isObject(holder) ? holder : {};
  return isText(executor) && isText(run) ? `${executor} ${run}` : undefined;
}

function isSoundEvent(logged: unknown): logged is SoundEvent {
  return hasKind(logged, "event") && isCount(logged["version"]);
}

function isSoundResponse(logged: unknown): logged is SoundResponse {
  return hasKind(logged, "response") && isCount(logged["seq"]);
}

function hasKind(logged: unknown, field: string): logged is Fields {
  if (!isObject(logged) || !isCount(logged["at"])) return false;
  const inner = logged[field];
  return isObject(inner) && isText(inner["kind"]);
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
