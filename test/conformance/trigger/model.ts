import { expect } from "vitest";
import { isHoldfastError } from "../../../src/model/errors.ts";
import type { SubscriptionTerms } from "../../../src/triggers.ts";
import { TriggerModel } from "./deliveries-model.ts";
import type { Owner, Variant } from "./deliveries-model.ts";
import { hour, monday } from "./fixture.ts";
import type { TriggerFixture } from "./fixture.ts";

/** Steps that are answered. */
type Asked =
  | {
      readonly do: "subscribe";
      readonly owner: Owner;
      readonly key: string;
      readonly variant: Variant;
    }
  | {
      readonly do: "revise";
      readonly owner: Owner;
      readonly key: string;
      readonly variant: Variant;
      readonly expected: number | undefined;
    }
  | {
      readonly do: "enable" | "disable" | "delete";
      readonly owner: Owner;
      readonly key: string;
    }
  | {
      readonly do: "record";
      readonly id: string;
      readonly source: "x" | "y";
      readonly payload: number;
    };

export type Step =
  | Asked
  | { readonly do: "clock"; readonly by: number }
  | { readonly do: "fire" }
  | { readonly do: "begin" | "end"; readonly session: "s1" | "s2" };

/** The database and the model, which take the same steps. */
export class TriggerTrial {
  readonly #fixture: TriggerFixture;
  readonly #model = new TriggerModel(1_000);

  constructor(fixture: TriggerFixture) {
    this.#fixture = fixture;
  }

  async take(next: Step): Promise<void> {
    const model = this.#model;
    switch (next.do) {
      case "clock":
        model.now = Math.max(1_000, model.now + next.by);
        this.#fixture.clock.set(instantOf(model.now));
        return;
      case "fire":
        model.fire();
        return this.#fire();
      case "begin":
      case "end":
        return this.#switch(next.do, next.session);
      default: {
        const expected = this.#expected(next);
        same(await answer(() => this.#asked(next)), expected);
      }
    }
  }

  #expected(next: Asked): string {
    const model = this.#model;
    switch (next.do) {
      case "subscribe":
        return model.subscribe(next.owner, next.key, next.variant);
      case "revise":
        return model.revise(next.owner, next.key, next.variant, next.expected);
      case "record":
        return model.record(next.id, next.source, next.payload);
      case "delete":
        return model.delete(next.owner, next.key);
      default:
        return model.enable(next.owner, next.key, next.do === "enable");
    }
  }

  async #asked(next: Asked): Promise<string> {
    const { triggers } = this.#fixture.mine;
    if (next.do === "record") {
      const source = { type: "test", key: next.source };
      const { id, payload } = next;
      return (await triggers.record({ key: id, source, payload })).kind;
    }
    const name = { key: next.key, ...registrant(next.owner) };
    switch (next.do) {
      case "subscribe": {
        const draft = { ...name, ...terms(next.variant) };
        const { existed } = await triggers.subscribe(draft);
        return existed ? "existed" : "created";
      }
      case "revise": {
        const { isChanged } = await triggers.revise(
          name,
          terms(next.variant),
          next.expected === undefined ? {} : { expectedRevision: next.expected },
        );
        return isChanged ? "revised" : "unchanged";
      }
      default:
        return String(await triggers[next.do](name));
    }
  }

  async #switch(what: string, session: "s1" | "s2"): Promise<void> {
    const { sessions } = this.#fixture.mine;
    if (what === "end") {
      await sessions.delete(session);
      this.#model.end(session);
    } else {
      const { generation } = await sessions.create(session);
      this.#model.generations.set(session, generation);
    }
  }

  async #fire(): Promise<void> {
    const { mine, theirs } = this.#fixture;
    const running = [mine, theirs].map(({ triggers }) => triggers.run());
    await mine.quiet();
    await theirs.quiet();
    for (const each of running) await each.close();
  }

  async compare(): Promise<void> {
    const { triggers, schedules } = this.#fixture.mine;
    const { items: subscribed, damaged } = await triggers.list();
    const next = new Map<string, number | null>();
    for (const { name, nextAt } of (await schedules.list("trigger")).items) next.set(name, nextAt);
    const { items: happened } = await triggers.occurrences({ limit: 1_000 });
    same(damaged, []);
    const seen = {
      subscriptions: subscribed
        .map((each) => {
          const at = next.get(each.source.key) ?? null;
          const state = each.isEnabled ? "on" : "off";
          return `${nameOf(each)} r${each.revision} ${state} ${each.content.target.kind} next ${at === null ? "-" : hoursOf(at)}`;
        })
        .toSorted(),
      occurrences: happened
        .map(({ key: id, source, occurredAt, deliveries }) => {
          const names = deliveries.map(({ subscription }) => nameOf(subscription)).toSorted();
          const isScheduled = source.type === "schedule";
          return `${isScheduled ? `schedule:${names[0] ?? id}@${hoursOf(occurredAt)}` : id}: ${names.join(" ")}`;
        })
        .toSorted(),
    };
    same(seen, this.#model.seen());
    // Every delivery has a process of its own.
    const started = happened.flatMap(({ deliveries }) => deliveries.map(({ process }) => process));
    same(new Set(started).size, started.length);
    same(started.includes(null), false);
  }
}

function same(actual: unknown, expected: unknown): void {
  expect(actual).toEqual(expected);
}

function instantOf(hours: number): number {
  return monday + (hours - 1_000) * hour;
}

function hoursOf(instant: number): number {
  return (instant - monday) / hour + 1_000;
}

function registrant(of: Owner): { readonly registrant: string | null } {
  return { registrant: of === "host" ? null : of };
}

function terms({ on, target }: Variant): SubscriptionTerms {
  return {
    source: typeof on === "string" ? { type: "test", key: on } : { every: on * hour },
    target: { kind: target },
  };
}

function nameOf({
  key: name,
  registrant: by,
}: {
  readonly key: string;
  readonly registrant: {
    readonly id: string;
    readonly generation: number;
  } | null;
}): string {
  return `${by?.id ?? "host"}.${by?.generation ?? 0}/${name}`;
}

const answers: Readonly<Record<string, string>> = {
  SUBSCRIPTION_EXISTS: "conflict",
  SUBSCRIPTION_NOT_FOUND: "missing",
  SUBSCRIPTION_CHANGED: "overtaken",
  OCCURRENCE_CONFLICT: "conflict",
  SESSION_NOT_FOUND: "gone",
};

/** What a call answers, or what its error means. */
async function answer(call: () => Promise<string>): Promise<string> {
  try {
    return await call();
  } catch (error) {
    const known = isHoldfastError(error) ? answers[error.code] : undefined;
    if (known === undefined) throw error;
    return known;
  }
}
