import { type Duration, idSource, type Database, type WaitOptions } from "../../src/kernel.ts";
import { awaitEvents, effects, processEffects } from "../../src/effects.ts";
import { executions } from "../../src/executions.ts";
import { leases, queue } from "../../src/sessions.ts";
import { processes } from "../../src/processes.ts";

type Answer = () => Promise<unknown>;

/** Something that can be waited for. */
interface PendingWait {
  /** Makes it, and tells how another process answers it. */
  readonly prepare: (database: Database) => Promise<Answer>;
  readonly wait: (database: Database, options: WaitOptions) => Promise<unknown>;
}

const child = { owner: "child", incarnation: "1" };
const scope = { kind: "turn", session: "s", id: "t1" };
const envelope = { kind: "tool", input: 1 };
const completed = { kind: "completed", value: 1 } as const;

/** All of them, each with names of its own, so that they can share a database in which there is a session "s". */
export const pendingWaits: Readonly<Record<string, PendingWait>> = {
  waitForLease: {
    async prepare(database) {
      const held = await leases(database).acquire("s", {
        owner: "parent",
        incarnation: "1",
      });
      if (held.kind !== "acquired") throw new Error("Somebody has the lease.");
      return () => leases(database).release(held.lease);
    },
    wait: (database, wait) => leases(database).waitForLease("s", child, wait),
  },
  waitForWork: {
    prepare: async (database) => () =>
      queue(database).enqueue("s", { items: [{ kind: "note", payload: 1 }] }),
    wait: (database, wait) => queue(database).waitForWork("s", wait),
  },
  waitForPending: {
    prepare: async (database) => () =>
      executions(database).create({ function: "wait/pending", input: 1 }),
    wait: (database, wait) => executions(database).waitForPending(["wait/pending"], wait),
  },
  waitForResponses: {
    async prepare(database) {
      const store = executions(database);
      const name = "wait/responses";
      await store.create({ id: "responses", function: name, input: 1 });
      return () => store.signal("responses", "go", 1);
    },
    wait: (database, wait) => executions(database).waitForResponses("responses", 0, wait),
  },
  waitForResult: {
    async prepare(database) {
      const store = executions(database);
      const name = "wait/result";
      await store.create({ id: "result", function: name, input: 1 });
      return async () => {
        const version = await lockedVersion(database, name, "1 hour");
        await store.finish("result", version, completed);
      };
    },
    wait: (database, wait) => executions(database).waitForResult("result", wait),
  },
  waitForTimer: {
    async prepare(database) {
      const name = "wait/timer";
      await executions(database).create({ function: name, input: 1 });
      return () => lockedVersion(database, name, "10 ms");
    },
    wait: (database, wait) => executions(database).waitForTimer(wait),
  },
  waitForEnd: {
    async prepare(database) {
      await processes(database).register({ id: "end", kind: "tool" });
      return () => processes(database).complete("end", completed);
    },
    wait: (database, wait) => processes(database).waitForEnd("end", wait),
  },
  "processEffects.waitForEnd": {
    async prepare(database) {
      await processes(database).register({ id: "effect-end", kind: "tool" });
      return () => processes(database).complete("effect-end", completed);
    },
    wait: (database, wait) => processEffects(database).waitForEnd(scope, "effect-end", wait),
  },
  waitForSignal: {
    async prepare(database) {
      const eventTypes = [{ name: "signal.go" }];
      await processes(database).register({
        id: "signal",
        kind: "tool",
        eventTypes,
      });
      return () => processes(database).signal("signal", "go", 1, { key: "k" });
    },
    wait: (database, wait) => processes(database).waitForSignal("signal", "go", 1, wait),
  },
  "awaitEvents.wait": {
    async prepare(database) {
      const { token } = await awaitEvents(database).open(scope, "answer");
      return () => awaitEvents(database).resolve(token, 1);
    },
    wait: (database, wait) => awaitEvents(database).wait(scope, "answer", wait),
  },
  "effects.execute, which another process runs": {
    async prepare(database) {
      let end = (): void => undefined;
      let running: Promise<unknown> = Promise.resolve();
      await new Promise<void>((begin) => {
        running = effects(database).execute(scope, "busy", envelope, () => {
          begin();
          return new Promise<number>((settle) => (end = () => settle(1)));
        });
      });
      return () => {
        end();
        return running;
      };
    },
    wait: (database, wait) => effects(database).execute(scope, "busy", envelope, () => 2, wait),
  },
  "effects.sleep": {
    prepare: async () => async () => undefined,
    wait: (database, wait) => effects(database).sleep(scope, "sleep", "300 ms", wait),
  },
};

/** Locks the one execution of a function; where its log goes on. */
async function lockedVersion(database: Database, name: string, lease: Duration): Promise<number> {
  const ids = idSource(database);
  const found = await executions(database).lockPending({
    functions: [name],
    holder: { executor: ids.nextId("Exr"), run: ids.nextId("Run") },
    lease,
    limit: 1,
  });
  const [run] = found.locked;
  if (run === undefined) throw new Error(`Nothing of ${name} is due.`);
  return run.nextVersion;
}
