import { afterAll, beforeAll, describe } from "vitest";
import type { Answer, Contender } from "../conformance/execution/contender.ts";
import { executionRaces } from "../conformance/execution/races.ts";
import type { Arena } from "../conformance/execution/races.ts";
import { Folder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

/** A contender in a process of its own. */
class Rival implements Contender {
  readonly name: string;
  readonly child: Child;
  /** Lines that questions asked so far have claimed; the first said that it is open. */
  #claimed = 1;

  constructor(path: string, name: string) {
    this.name = name;
    this.child = new Child("execution-contender-process.ts", [path, name]);
  }

  async ask(command: Parameters<Contender["ask"]>[0]): Promise<Answer> {
    const line = this.#claimed;
    this.#claimed += 1;
    this.child.tell(JSON.stringify(command));
    await this.child.reported(line + 1);
    const answer = this.child.lines[line];
    if (answer === undefined) throw new Error(`${this.name} ended: ${this.child.errors}`);
    return JSON.parse(answer) as Answer;
  }
}

describe("processes racing for executions on one SQLite file", () => {
  let arena: Arena | undefined;
  let folder: Folder | undefined;
  let rivals: readonly Rival[] = [];

  beforeAll(async () => {
    folder = new Folder();
    const database = await folder.open();
    const path = folder.file();
    rivals = ["a", "b", "c", "d"].map((name) => new Rival(path, name));
    await Promise.all(rivals.map(({ child }) => child.reported(1)));
    arena = { database, contenders: rivals };
  });

  afterAll(async () => {
    for (const { child } of rivals) child.kill();
    await Promise.all(rivals.map(({ child }) => child.ended));
    await folder?.dispose();
  });

  executionRaces(() => {
    if (arena === undefined) throw new Error("Nothing was opened.");
    return arena;
  });
});
