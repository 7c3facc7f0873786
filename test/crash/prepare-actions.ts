import { type Holder, executions } from "../../src/executions.ts";
import { idSource, type Database } from "../../src/kernel.ts";
import { awaitEvents } from "../../src/effects.ts";
import { processes } from "../../src/processes.ts";
import { sessions } from "../../src/sessions.ts";
import { triggers } from "../../src/triggers.ts";
import { scope } from "./actions/effects.ts";
import { occurrence } from "./actions/triggers.ts";
import { preparedTurn } from "./turn.ts";
import type { TurnOrder } from "./turn.ts";

/** What those who do the actions have to know of what was prepared. */
export interface Orders {
  readonly turn: TurnOrder;
  /** Of the await-event "b". */
  readonly token: string;
  /** Who runs the execution "job", and how far its log is. */
  readonly holder: Pick<Holder, "executor" | "run">;
  readonly version: number;
}

/** Makes a database at the instant 1,000 in which each of the actions can be done at 2,000. */
export async function prepareActions(database: Database): Promise<Orders> {
  const turn = await preparedTurn(database);
  await sessions(database).create("chat");
  const registry = processes(database);
  await registry.register({
    id: "p",
    kind: "tool",
    wakeTarget: "chat",
    eventTypes: ["found", "process.completed"].map((name) => ({
      name,
      wake: { input: { kind: "payload" } },
    })),
  });
  const spawned = { kind: "workflow", wakeTarget: "chat" };
  await registry.spawn({
    ...spawned,
    id: "run",
    execution: { function: "ci/build", role: "external" },
  });
  await registry.spawn({
    ...spawned,
    id: "job",
    execution: { function: "ci/build" },
  });
  await executions(database).create({ id: "asks", function: "asks" });
  await executions(database).create({
    id: "asks.o:1_1",
    function: "holdfast/external",
    role: "external",
    input: { schema: { type: "object", required: ["approve"] } },
  });
  const { clock, entropy } = database;
  const ids = idSource({ clock, entropy });
  const holder = { executor: ids.nextId("Exr"), run: ids.nextId("Run") };
  await executions(database).lock("job", 1, { holder, lease: "1h" });
  const target = { kind: "build", wakeTarget: "chat" };
  const { source } = occurrence;
  const store = triggers(database);
  await store.subscribe({ key: "own", registrant: "chat", source, target });
  await store.subscribe({ key: "host", source, target });
  await store.subscribe({ key: "clock", source: { every: 1_000 }, target });
  return { turn, token: await prepareAnswer(database), holder, version: 2 };
}

/** An await-event that somebody outside may answer; its token. */
async function prepareAnswer(database: Database): Promise<string> {
  const { token } = await awaitEvents(database).open(scope, "b");
  return token;
}
