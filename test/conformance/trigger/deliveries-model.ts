/** What triggers must do, written down without a database. */

export type Owner = "host" | "s1" | "s2";

/** What a subscription says: one of two sources, or a schedule of so many hours. */
export interface Variant {
  readonly on: "x" | "y" | 2 | 3;
  readonly target: "build" | "test";
}

interface Known {
  revision: number;
  isDeleted: boolean;
  isEnabled: boolean;
  variant: Variant;
  schedule: Timetable | undefined;
}

interface Timetable {
  every: number;
  anchor: number;
  last: number;
  /** Undefined while it is paused. */
  next: number | undefined;
}

export class TriggerModel {
  now: number;
  readonly generations = new Map<Owner, number>([["host", 0]]);
  readonly #subscriptions = new Map<string, Known>();
  readonly #occurrences = new Map<string, readonly string[]>();
  readonly #contents = new Map<string, string>();

  constructor(now: number) {
    this.now = now;
  }

  #name(owner: Owner, key: string): string | undefined {
    const generation = this.generations.get(owner);
    return generation === undefined ? undefined : `${owner}.${generation}/${key}`;
  }

  subscribe(owner: Owner, key: string, variant: Variant): string {
    const name = this.#name(owner, key);
    if (name === undefined) return "gone";
    const known = this.#subscriptions.get(name);
    if (known !== undefined && !known.isDeleted)
      return isSame(known.variant, variant) ? "existed" : "conflict";
    this.#subscriptions.set(name, {
      revision: (known?.revision ?? 0) + 1,
      isDeleted: false,
      isEnabled: true,
      variant,
      schedule: this.#timetable(variant),
    });
    return "created";
  }

  #timetable({ on: every }: Variant): Timetable | undefined {
    if (typeof every === "string") return undefined;
    const anchor = this.now + every;
    return { every, anchor, last: 0, next: anchor };
  }

  revise(owner: Owner, key: string, variant: Variant, expected: number | undefined): string {
    const name = this.#name(owner, key);
    if (name === undefined) return "gone";
    const known = this.#subscriptions.get(name);
    if (known === undefined || known.isDeleted) return "missing";
    if (isSame(known.variant, variant)) return "unchanged";
    if (expected !== undefined && expected !== known.revision) return "overtaken";
    if (known.variant.on !== variant.on) {
      const { last = 0 } = known.schedule ?? {};
      const schedule = this.#timetable(variant);
      // A schedule that stays one remembers what it has fired.
      if (schedule !== undefined && known.schedule !== undefined) {
        schedule.last = last;
        schedule.next = after(schedule, Math.max(this.now, last));
      }
      if (schedule !== undefined && !known.isEnabled) schedule.next = undefined;
      known.schedule = schedule;
    }
    known.variant = variant;
    known.revision += 1;
    return "revised";
  }

  enable(owner: Owner, key: string, isEnabled: boolean): string {
    const name = this.#name(owner, key);
    if (name === undefined) return "gone";
    const known = this.#subscriptions.get(name);
    if (known === undefined || known.isDeleted) return "false";
    if (known.isEnabled === isEnabled) return "false";
    known.isEnabled = isEnabled;
    known.revision += 1;
    const { schedule } = known;
    if (schedule !== undefined)
      schedule.next = isEnabled ? after(schedule, Math.max(this.now, schedule.last)) : undefined;
    return "true";
  }

  delete(owner: Owner, key: string): string {
    const name = this.#name(owner, key);
    if (name === undefined) return "gone";
    const known = this.#subscriptions.get(name);
    if (known === undefined || known.isDeleted) return "false";
    known.isDeleted = true;
    known.isEnabled = false;
    known.revision += 1;
    known.schedule = undefined;
    return "true";
  }

  record(key: string, source: "x" | "y", payload: number): string {
    const before = this.#contents.get(key);
    const content = `${source} ${payload}`;
    if (before !== undefined) return before === content ? "replayed" : "conflict";
    this.#contents.set(key, content);
    this.#occurrences.set(
      key,
      this.#living()
        .filter(([, { isEnabled, variant }]) => isEnabled && variant.on === source)
        .map(([name]) => name),
    );
    return "recorded";
  }

  /** What a scheduler does that runs now. */
  fire(): void {
    for (const [name, { schedule }] of this.#living()) {
      if (schedule?.next === undefined || schedule.next > this.now) continue;
      let instant = schedule.next;
      for (let each = instant; each <= this.now; each = after(schedule, each)) instant = each;
      const key = `schedule:${name}@${instant}`;
      if (!this.#occurrences.has(key)) this.#occurrences.set(key, [name]);
      schedule.last = instant;
      schedule.next = after(schedule, this.now);
    }
  }

  end(owner: "s1" | "s2"): void {
    const prefix = `${owner}.${this.generations.get(owner) ?? 0}/`;
    this.generations.delete(owner);
    for (const name of this.#subscriptions.keys())
      if (name.startsWith(prefix)) this.#subscriptions.delete(name);
    for (const [key, names] of this.#occurrences)
      if (key.startsWith(`schedule:${prefix}`)) this.#occurrences.delete(key);
      else
        this.#occurrences.set(
          key,
          names.filter((name) => !name.startsWith(prefix)),
        );
  }

  #living(): readonly (readonly [string, Known])[] {
    return [...this.#subscriptions]
      .filter(([, { isDeleted }]) => !isDeleted)
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
  }

  /** All that can be seen of it, as lines. */
  seen(): { readonly subscriptions: unknown; readonly occurrences: unknown } {
    return {
      subscriptions: this.#living().map(
        ([name, { revision, isEnabled, variant, schedule }]) =>
          `${name} r${revision} ${isEnabled ? "on" : "off"} ${variant.target} next ${schedule?.next ?? "-"}`,
      ),
      occurrences: [...this.#occurrences]
        .map(([key, names]) => `${key}: ${names.join(" ")}`)
        .toSorted(),
    };
  }
}

function isSame(a: Variant, b: Variant): boolean {
  return a.on === b.on && a.target === b.target;
}

/** The first instant of a timetable after another. */
function after({ anchor, every }: Timetable, instant: number): number {
  let next = anchor;
  while (next <= instant) next += every;
  return next;
}
