import { expect, test } from "vitest";
import { wakeRounds } from "../conformance/process/wake-rounds.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

interface Fact {
  readonly begun?: string;
  readonly ended?: string;
  readonly found?: unknown;
  readonly polls?: number;
}

/** A process running execution-waiter.ts, by what it said. */
class Waiter {
  readonly child: Child;
  readonly #facts: Fact[] = [];

  constructor(path: string) {
    this.child = new Child("execution-waiter.ts", [path]);
  }

  tell(line: string): void {
    this.child.tell(line);
  }

  async fact(isMeant: (fact: Fact) => boolean): Promise<Fact> {
    let found: Fact | undefined;
    await this.child.until(() => {
      for (const line of this.child.lines.slice(this.#facts.length))
        this.#facts.push(JSON.parse(line) as Fact);
      found = this.#facts.findLast(isMeant);
      return found !== undefined;
    });
    if (found !== undefined) return found;
    throw new Error(`The waiter ended: ${this.child.errors}`);
  }
}

const rounds = isDeep ? 300 : 20;

test(`a wait in another process is woken by a commit here, ${rounds} times without a loss, and not by the poll`, () =>
  withFolder(async (folder) => {
    const database = await folder.open();
    const waiter = new Waiter(folder.file());
    try {
      await wakeRounds(database, rounds, (line) => {
        waiter.tell(line);
        return {
          begun: waiter.fact((fact) => fact.begun === line),
          found: waiter.fact((fact) => fact.ended === line).then(({ found }) => found),
        };
      });
      waiter.tell("polls");
      const { polls } = await waiter.fact((fact) => fact.polls !== undefined);
      // Two rounds of three have somebody to wake. By the poll alone each of
      // them is counted; beside it one or the other is, on a busy machine.
      expect(polls).toBeLessThan(rounds / 3);
    } finally {
      waiter.child.kill();
      await waiter.child.ended;
    }
  }));
