import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NewNode } from "../../../src/model/session/turn.ts";
import { isDeep, roundsOn, seed } from "../../depth.ts";
import type { Backend } from "../backend.ts";
import { hide, holding, inFixture } from "./fixture.ts";
import type { HeldSession, SessionFixture } from "./fixture.ts";
import { expectSound } from "../sound.ts";

/** One node of all sessions that show it. */
interface Entry {
  readonly id: string;
  readonly parent: Entry | null;
}

/** What a session must show, written down without a database. */
interface Expected {
  readonly held: HeldSession;
  readonly shared: readonly Entry[];
  readonly own: Entry[];
  readonly hidden: Set<Entry>;
  leaf: Entry | null;
  revision: number;
}

function shown(session: Expected): readonly Entry[] {
  return [...session.shared, ...session.own].filter((entry) => !session.hidden.has(entry));
}

function pathTo(session: Expected, leaf: Entry | null): readonly Entry[] {
  const visible = new Set(shown(session));
  const path: Entry[] = [];
  for (let at = leaf; at !== null && visible.has(at); at = at.parent) path.unshift(at);
  return path;
}

/** What happens: what to do, and numbers that choose among what there is. */
const steps = fc.array(
  fc.record({
    what: fc.constantFrom(
      "append",
      "append",
      "append",
      "move",
      "hide",
      "hide",
      "fork",
      "fork",
      "vacuum",
      "vacuum",
      "delete",
      "create",
    ),
    which: fc.nat(100),
    first: fc.nat(100),
    second: fc.nat(100),
  }),
  { minLength: 5, maxLength: isDeep ? 60 : 25 },
);

type Step = typeof steps extends fc.Arbitrary<(infer S)[]> ? S : never;

class SessionModel {
  readonly #fixture: SessionFixture;
  readonly #sessions = new Map<string, Expected>();
  #named = 0;
  #nodes = 0;
  #turns = 0;

  constructor(fixture: SessionFixture) {
    this.#fixture = fixture;
  }

  async take(step: Step): Promise<void> {
    if (step.what === "create" || this.#sessions.size === 0) {
      await this.#create();
      return;
    }
    const ids = [...this.#sessions.keys()];
    const id = ids[step.which % ids.length] ?? "";
    const session = this.#sessions.get(id);
    if (session !== undefined) await this.#change(id, session, step);
  }

  async #create(): Promise<void> {
    const id = `s${(this.#named += 1)}`;
    this.#expect(id, await this.#fixture.held(id), [], null);
  }

  #expect(id: string, held: HeldSession, shared: readonly Entry[], leaf: Entry | null): void {
    this.#sessions.set(id, {
      held,
      shared,
      own: [],
      hidden: new Set(),
      leaf,
      revision: 0,
    });
  }

  async #change(id: string, session: Expected, step: Step): Promise<void> {
    const { store, leases } = this.#fixture;
    const entries = shown(session);
    const chosen = entries[step.first % Math.max(1, entries.length)];
    switch (step.what) {
      case "append":
        return this.#append(session, step, chosen);
      case "move":
        if (chosen === undefined) return;
        await this.#commit(session, { leaf: { id: chosen.id } });
        session.leaf = chosen;
        return;
      case "hide":
        if (chosen === undefined) return;
        session.revision += 1;
        this.#compare(id, await hide(this.#fixture, id, chosen.id), {
          hidden: 1,
          revision: session.revision,
          leaf: (await store.head(id)).leaf,
        });
        session.hidden.add(chosen);
        if (session.leaf === chosen) session.leaf = await this.#leafAbove(id, session, chosen);
        return;
      case "fork": {
        if (chosen === undefined) return;
        const name = `s${(this.#named += 1)}`;
        const fork = await store.fork(id, name, { node: chosen.id });
        const held = await holding(store, leases, fork);
        this.#expect(name, held, pathTo(session, chosen), chosen);
        return;
      }
      case "vacuum":
        await store.vacuum(id, { rowsPerSlice: 2 });
        return;
      default:
        await store.delete(id, { rowsPerSlice: 3 });
        this.#sessions.delete(id);
    }
  }

  /** Where a session goes on when its leaf is hidden: at the nearest node above that it shows. */
  async #leafAbove(id: string, session: Expected, hidden: Entry): Promise<Entry | null> {
    const known = new Set([...session.shared, ...session.own]);
    let above = hidden.parent;
    while (above !== null && session.hidden.has(above)) above = above.parent;
    const nearest = above !== null && known.has(above) ? above : null;
    if (nearest === hidden.parent) return nearest;
    // The way leads over hidden nodes: where a vacuum took one, it ends there.
    const { leaf } = await this.#fixture.store.head(id);
    this.#compare(id, [null, nearest?.id ?? null].includes(leaf), true);
    return leaf === null ? null : nearest;
  }

  async #append(
    session: Expected,
    { first, second }: Step,
    chosen: Entry | undefined,
  ): Promise<void> {
    const added: Entry[] = [];
    const nodes: NewNode[] = [];
    for (let ordinal = 0; ordinal <= second % 3; ordinal += 1) {
      const id = `n${(this.#nodes += 1)}`;
      const node = { id, kind: "note", payload: id };
      const how = (first + ordinal) % 4;
      const before = added.at(-1) ?? session.leaf;
      if (how === 0 && chosen !== undefined) {
        nodes.push({ ...node, parent: { id: chosen.id } });
        added.push({ id, parent: chosen });
      } else if (how === 1) {
        nodes.push({ ...node, parent: null });
        added.push({ id, parent: null });
      } else if (how === 2 && added[0] !== undefined) {
        nodes.push({ ...node, parent: { ordinal: 0 } });
        added.push({ id, parent: added[0] });
      } else {
        nodes.push(node);
        added.push({ id, parent: before });
      }
    }
    await this.#commit(session, { nodes });
    session.own.push(...added);
    session.leaf = added.at(-1) ?? null;
  }

  async #commit(
    session: Expected,
    content: Parameters<HeldSession["commit"]>[0] extends infer T
      ? Omit<T & object, "turn">
      : never,
  ): Promise<void> {
    const turn = `t${(this.#turns += 1)}`;
    const outcome = await session.held.commit({
      turn,
      expectedRevision: session.revision,
      ...content,
    });
    session.revision += 1;
    this.#compare(turn, outcome.revision, session.revision);
  }

  /** Pairs of what was found and what must be, gathered until the next check. */
  readonly #pairs: (readonly [what: string, found: unknown, wanted: unknown])[] = [];

  #compare(what: string, found: unknown, wanted: unknown): void {
    this.#pairs.push([what, found, wanted]);
  }

  /** What every session shows and must show, whatever happened to others. */
  async differences(): Promise<readonly object[]> {
    for (const [id, session] of this.#sessions) {
      const { head, path } = await this.#fixture.store.load(id);
      const graph = await this.#fixture.store.graph(id);
      const found = {
        revision: head.revision,
        count: head.nodeCount,
        path: path.nodes.map((node) => node.id),
        graph: graph.items.map((node) => node.id),
      };
      const wanted = {
        revision: session.revision,
        count: shown(session).length,
        path: pathTo(session, session.leaf).map((entry) => entry.id),
        graph: shown(session).map((entry) => entry.id),
      };
      this.#compare(id, found, wanted);
    }
    return this.#pairs
      .splice(0)
      .filter(([, found, wanted]) => !isDeepStrictEqual(found, wanted))
      .map(([what, found, wanted]) => ({ what, found, wanted }));
  }

  /** With the last session everything goes: what is left then. */
  async remains(): Promise<readonly object[]> {
    for (const id of this.#sessions.keys()) await this.#fixture.store.delete(id);
    await this.#fixture.store.reclaim();
    const { nodes = [], marks = [] } = await this.#fixture.dump();
    return [...nodes, ...marks];
  }
}

export function sessionPropertySuite(backend: Backend): void {
  describe("sessions, forks and removals in any order", () => {
    test("show exactly what they must, and leave nothing behind", { timeout: 300_000 }, () =>
      fc.assert(
        fc.asyncProperty(steps, (all) =>
          inFixture(backend, async (fixture) => {
            const model = new SessionModel(fixture);
            for (const step of all) {
              await model.take(step);
              expect(await model.differences()).toEqual([]);
            }
            await expectSound(fixture.database);
            expect(await model.remains()).toEqual([]);
            await expectSound(fixture.database);
          })(),
        ),
        {
          seed,
          numRuns: roundsOn(backend, { deep: 60, short: 6, least: 3 }),
        },
      ),
    );
  });
}
