import type { OwnerId } from "../../src/kernel.ts";
import type { ChangeHint, Liveness, Stats } from "../../src/sql/database.ts";
import { createNoteTable } from "../conformance/notes.ts";
import { withFolder } from "../sqlite/place.ts";
import type { Folder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

type Fact = {
  /** Said by the shell that a process may run under. */
  readonly pid?: number;
  readonly owner?: OwnerId;
  readonly heard?: ChangeHint;
  readonly wrote?: string;
  /** When it happened, for those two. */
  readonly at?: number;
  readonly liveness?: Liveness;
  readonly stats?: Stats;
  /** Notes of its flood so far. */
  readonly flooded?: number;
};

/** A process running neighbour.ts, by what it said. */
export class Neighbour {
  readonly child: Child;
  #parsed = 0;
  #flooded = 0;
  readonly #facts: Fact[] = [];

  constructor(path: string, under: readonly string[] = []) {
    this.child = new Child("neighbour.ts", [path], under);
  }

  static async start(path: string, under: readonly string[] = []): Promise<Neighbour> {
    const neighbour = new Neighbour(path, under);
    await neighbour.owner();
    return neighbour;
  }

  get facts(): readonly Fact[] {
    for (; this.#parsed < this.child.lines.length; this.#parsed += 1) {
      const line = this.child.lines[this.#parsed] ?? "{}";
      const fact = JSON.parse(line) as Fact;
      this.#facts.push(fact);
      this.#flooded = fact.flooded ?? this.#flooded;
    }
    return this.#facts;
  }

  /** How many notes of its flood were acknowledged. */
  get flooded(): number {
    return this.facts.length === 0 ? 0 : this.#flooded;
  }

  /** The keys of the changes it heard of, in order. */
  get heardKeys(): readonly string[] {
    return this.facts.flatMap(({ heard }) => (heard?.kind === "change" ? [heard.key] : []));
  }

  get heardDeaths(): readonly OwnerId[] {
    return this.facts.flatMap(({ heard }) => (heard?.kind === "death" ? [heard.owner] : []));
  }

  get heardUnknown(): number {
    return this.facts.filter(({ heard }) => heard?.kind === "unknown").length;
  }

  async owner(): Promise<OwnerId> {
    const found = await this.#find((fact) => fact.owner);
    if (found === undefined) throw new Error(`The neighbour ended: ${this.child.errors}`);
    return found;
  }

  async pid(): Promise<number> {
    return (await this.#find((fact) => fact.pid)) ?? Number.NaN;
  }

  async write(id: string): Promise<void> {
    this.child.tell(`write ${id}`);
    await this.#find((fact) => (fact.wrote === id ? id : undefined));
  }

  async liveness(owner: OwnerId): Promise<Liveness | undefined> {
    const before = this.facts.length;
    this.child.tell(`liveness ${owner}`);
    return this.#find((fact, index) => (index >= before ? fact.liveness : undefined));
  }

  async stats(): Promise<Stats | undefined> {
    const before = this.facts.length;
    this.child.tell("stats");
    return this.#find((fact, index) => (index >= before ? fact.stats : undefined));
  }

  until(isFulfilled: () => boolean): Promise<void> {
    return this.child.until(isFulfilled);
  }

  async #find<T>(pick: (fact: Fact, index: number) => T | undefined): Promise<T | undefined> {
    const look = (): T | undefined => {
      for (const [index, fact] of this.facts.entries()) {
        const picked = pick(fact, index);
        if (picked !== undefined) return picked;
      }
      return undefined;
    };
    await this.child.until(() => look() !== undefined);
    return look();
  }
}

/** A file with the table of notes, and the processes that a test starts on it. */
export async function withFile(
  body: (folder: Folder, start: (under?: readonly string[]) => Promise<Neighbour>) => Promise<void>,
): Promise<void> {
  await withFolder(async (folder) => {
    const setup = await folder.open();
    await setup.write("tables", createNoteTable);
    await setup.close();
    const started: Neighbour[] = [];
    try {
      await body(folder, async (under) => {
        const neighbour = await Neighbour.start(folder.file(), under);
        started.push(neighbour);
        return neighbour;
      });
    } finally {
      for (const { child } of started) child.kill();
      await Promise.all(started.map(({ child }) => child.ended));
    }
  });
}
