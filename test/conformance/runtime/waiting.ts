import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import type { RuntimeEvent } from "../../../src/runtime/runtime-event.ts";

/** Something that a test lets through when it wants. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Waits for a condition that something else brings about; it has as long as the test. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 2));
}

/** The kinds of a run's events, in order. */
export async function kindsOf(holdfast: Holdfast, id: string): Promise<readonly string[]> {
  const { items } = await holdfast.executions.events(id, { limit: 1_000 });
  return items.map(({ event }) => event.kind);
}

/** What a runtime warned of, but that code held the event loop: on a slow machine that is so of any code. */
export function warningsIn(said: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
  return said.filter(
    ({ level, message }) => level === "warn" && !message.includes("blocked the event loop"),
  );
}

/** How often each thing was done, for steps that must be done once. */
export class Tally {
  readonly #counts = new Map<string, number>();

  count(name: string): number {
    const next = this.of(name) + 1;
    this.#counts.set(name, next);
    return next;
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  get all(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].toSorted(([a], [b]) => a.localeCompare(b)));
  }
}
