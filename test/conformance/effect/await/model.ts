import assert from "node:assert/strict";
import { manualClock } from "../../../../src/model/time/clock.ts";
import { type AwaitReply, awaitEvents, type EffectScope } from "../../../../src/effects.ts";
import type { Database } from "../../../../src/kernel.ts";

/** What somebody does next; await-events have numbers. */
export type Step =
  | {
      readonly do: "open";
      readonly event: number;
      readonly within: number | null;
    }
  | {
      readonly do: "resolve" | "fail";
      readonly event: number;
      readonly value: number;
    }
  | {
      readonly do: "cancel" | "revoke" | "read" | "wait";
      readonly event: number;
    }
  | { readonly do: "clock"; readonly by: number };

interface Event {
  readonly token: string;
  readonly dueAt: number | null;
  /** How it ended, as soon as somebody was told; it must be so for ever. */
  end: string | undefined;
  /** Somebody may have noticed that its time was over. */
  mayBeOver: boolean;
  isRevoked: boolean;
}

/** Answers as one text: how it ended, and with what. */
function told(outcome: unknown): string {
  if (outcome === undefined) return "revoked";
  const { kind, value, error } = outcome as {
    kind: string;
    value?: unknown;
    error?: Error;
  };
  return `${kind} ${error === undefined ? JSON.stringify(value) : error.message}`;
}

/**
 * One scope and what must be true of it, in the words of the promises: who
 * ends an await-event first wins and stays the winner, nothing is accepted
 * when its time is over or refused when it is not, for ever, whatever the clock
 * does.
 */
export class AwaitModel {
  readonly #scope: EffectScope;
  readonly #clock = manualClock(1_000);
  readonly #events;
  readonly #opened = new Map<number, Event>();

  constructor(database: Database, session: string) {
    this.#scope = { session, kind: "turn", id: "t" };
    const clock = this.#clock;
    this.#events = awaitEvents(database, { clock });
  }

  async take(step: Step): Promise<void> {
    if (step.do === "clock") {
      this.#clock.set(Math.max(0, this.#clock.now() + step.by));
      return;
    }
    this.#timePasses();
    switch (step.do) {
      case "open":
        return this.#open(step.event, step.within);
      default:
        return this.#toEvent(step);
    }
  }

  /** Everything that was told is asked for again. */
  async retell(): Promise<void> {
    this.#timePasses();
    for (const number of this.#opened.keys()) await this.#toEvent({ do: "wait", event: number });
  }

  /** From now on whatever is asked may have shown whose time is over. */
  #timePasses(): void {
    for (const event of this.#opened.values())
      if (event.dueAt !== null && event.dueAt <= this.#clock.now()) event.mayBeOver = true;
  }

  async #open(number: number, within: number | null): Promise<void> {
    const known = this.#opened.get(number);
    const opened = await attempt(
      this.#events.open(this.#scope, `${number}`, within === null ? {} : { answerWithin: within }),
    );
    if (known?.isRevoked === true && known.end === "revoked") {
      assert.equal(opened.code, "AWAIT_EVENT_REVOKED");
      return;
    }
    assert(opened.value !== undefined, opened.code);
    const { token, dueAt, existed } = opened.value;
    assert.equal(existed, known !== undefined);
    if (known !== undefined) {
      assert.deepEqual([token, dueAt], [known.token, known.dueAt]);
      return;
    }
    assert.equal(dueAt, within === null ? null : this.#clock.now() + within);
    this.#opened.set(number, {
      token,
      dueAt,
      end: undefined,
      mayBeOver: within === 0,
      isRevoked: false,
    });
  }

  async #toEvent(step: Extract<Step, { readonly event: number }>): Promise<void> {
    const event = this.#opened.get(step.event);
    if (event === undefined) return;
    const [scope, key] = [this.#scope, `${step.event}`];
    switch (step.do) {
      case "resolve":
      case "fail": {
        const answer =
          step.do === "resolve"
            ? this.#events.resolve(event.token, step.value)
            : this.#events.fail(event.token, new Error(`${step.value}`));
        const reply = await attempt(answer);
        if (event.isRevoked) assert.equal(reply.code, "AWAIT_TOKEN_INVALID");
        else this.#replied(event, reply, wished(step));
        return;
      }
      case "cancel":
      case "revoke": {
        const reply = await attempt(this.#events[step.do](scope, key));
        this.#replied(event, reply, wished(step));
        if (step.do === "revoke") event.isRevoked = true;
        return;
      }
      default: {
        const found = await this.#events.get(scope, key);
        assert(found !== undefined);
        const isOver = event.dueAt !== null && event.dueAt <= this.#clock.now();
        if (found.state === "open") {
          assert.equal(event.end, undefined);
          assert(!isOver, "It is open, and its time is over.");
          const wait = this.#events.wait(scope, key, { timeout: 0 });
          assert.equal((await attempt(wait)).code, "DEADLINE_EXCEEDED");
        } else this.#ended(event, told(found.outcome));
      }
    }
  }

  #replied(event: Event, { value: reply, code }: Attempt<AwaitReply>, wish: string): void {
    assert(reply !== undefined, code);
    if (reply.kind === "late") {
      this.#ended(event, told(reply.outcome));
      assert.notEqual(event.end, wish);
    } else if (reply.kind === "replayed") assert.equal(event.end, wish);
    else {
      assert.equal(event.end, undefined, "It was accepted twice.");
      assert(
        event.dueAt === null || this.#clock.now() < event.dueAt,
        "It was accepted when its time was over.",
      );
      event.end = wish;
    }
  }

  /** How it ended must be what was told before; or it has timed out, if its time may be over. */
  #ended(event: Event, end: string): void {
    if (event.end === undefined) {
      assert.equal(end, "timedOut undefined");
      assert(event.mayBeOver, "It timed out before its time.");
    }
    event.end ??= end;
    assert.equal(end, event.end);
  }
}

function wished(step: Extract<Step, { readonly event: number }>): string {
  switch (step.do) {
    case "resolve":
      return `resolved ${step.value}`;
    case "fail":
      return `failed ${step.value}`;
    case "cancel":
      return "cancelled undefined";
    default:
      return "revoked";
  }
}

interface Attempt<T> {
  readonly value?: T;
  readonly code?: string;
}

/** What came of it: a value, or the code of the error. */
async function attempt<T>(promise: Promise<T>): Promise<Attempt<T>> {
  try {
    return { value: await promise };
  } catch (error) {
    return {
      code: (error as { readonly code?: string }).code ?? String(error),
    };
  }
}
