import { describe, expect, test } from "vitest";
import type { Tx, Database } from "../../../src/kernel.ts";
import { executions } from "../../../src/executions.ts";
import { queue as queueIn } from "../../../src/sessions.ts";
import { processes } from "../../../src/processes.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { Fault, faulty, onProcesses, stored } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";
import { build } from "./spawned-build.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

export function processFaultsSuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("a fault within a transaction of the registry", () => {
    faultTests(on);
  });
  describe("with a codec that encrypts", () => {
    secretTests(on);
  });
}

function secretTests(on: On): void {
  test(
    "nothing of what was given can be read in the tables, and all of it through the store",
    on(async ({ database, clock }) => {
      const mirrored = (text: string): string => Array.from(text).toReversed().join("");
      const payload = {
        name: "mirror",
        encode: mirrored,
        decode: mirrored,
        hash: (text: string) => database.sha256Hex(`key:${text}`),
      };
      const environment = { clock, payload };
      const store = processes(database, environment);
      const at = { kind: "pointer", pointer: "/secret" } as const;
      await store.register({
        id: "p",
        kind: "k",
        wakeTarget: "s",
        input: "secret input",
        eventTypes: [
          { name: "e", wake: { input: at, dedupe: at } },
          { name: "built", terminal: { state: "completed", output: at } },
        ],
      });
      await store.append("p", {
        type: "e",
        payload: { secret: "secret text" },
      });
      await store.setExternalRef("p", { backend: "ci", id: "secret id" });
      await store.append("p", {
        type: "built",
        payload: { secret: "secret end" },
        replayKey: "k",
      });
      await store.spawn({
        ...build,
        execution: { ...build.execution, role: "external", input: "secret" },
      });
      await executions(database, environment).resolve("build", {
        kind: "completed",
        value: "secret result",
      });
      const dumped = JSON.stringify(await stored(database));
      expect(dumped.replaceAll("/secret", "")).not.toContain("secret");
      expect(await store.output("p")).toEqual({
        kind: "completed",
        value: "secret end",
      });
      expect(await store.output("build")).toEqual({
        kind: "completed",
        value: "secret result",
      });
      const { items: batches } = await queueIn(database, environment).list("s");
      expect(batches.map(({ items }) => items[0]?.payload)).toMatchObject([
        { input: "secret text" },
        { input: "Process build: completed." },
      ]);
    }),
  );
}

/** Runs a transaction that fails before each of its statements in turn, and at last after all of them; tells how many it has. */
async function failingEverywhere(database: Database, tx: () => Tx<unknown>): Promise<number> {
  for (let n = 0; ; n += 1) {
    const error = await rejection(
      database.write("faulty", function* () {
        yield* faulty(tx(), n);
        throw new Fault("Past the end.");
      }),
    );
    expect(error).toBeInstanceOf(Fault);
    if (error.message === "Past the end.") return n;
  }
}

function faultTests(on: On): void {
  test(
    "[AX10] a fault before any statement of it leaves nothing at all",
    on(async (fixture) => {
      const { database, store } = fixture;
      const spawn = store.spawn.prepare(build);
      const before = await stored(database);
      const statements = await failingEverywhere(database, spawn);
      expect(await stored(database)).toEqual(before);
      await database.write("spawn", spawn);
      expect(statements).toBeGreaterThan(8);
      expect(await store.hasHandle("build", "s")).toBe(true);
    }),
  );

  test(
    "a fault before any statement of an append with a wake leaves neither",
    on(async (fixture) => {
      const { database, store, queue } = fixture;
      await store.register({
        id: "p",
        kind: "k",
        wakeTarget: "s",
        eventTypes: [{ name: "e", wake: { input: { kind: "payload" } } }],
      });
      const event = { type: "e", payload: "hello", replayKey: "k" };
      const append = store.append.prepare("p", event);
      const before = await stored(database);
      const statements = await failingEverywhere(database, append);
      expect(await stored(database)).toEqual(before);
      await database.write("append", append);
      expect(statements).toBeGreaterThan(6);
      expect((await queue.list("s")).items).toHaveLength(1);
    }),
  );
}
