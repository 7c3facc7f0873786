import { isHoldfastError } from "../../../src/model/errors.ts";
import type { DelayId } from "../../../src/model/ids/delay-id.ts";
import type { ExecutionId } from "../../../src/model/ids/execution-id.ts";
import type { Database } from "../../../src/sql/database.ts";
import { answerDelay } from "../../fixtures/execution-operations.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { expireLock } from "../../../src/stores/execution/timers/expire.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { LockPendingOptions } from "../../../src/stores/execution/lock/lock-pending.ts";

/** What one of several at once is told to do; plain data, for it may be another process. */
export type Command =
  | { readonly do: "finish"; readonly id: string; readonly version: number }
  | {
      readonly do: "expireLock";
      readonly id: ExecutionId;
      readonly at: number;
    }
  | { readonly do: "cancelDelay"; readonly delay: DelayId }
  | { readonly do: "expireDelay"; readonly delay: DelayId }
  /** Locks once, or until nothing is left; answers with the ids. */
  | {
      readonly do: "lockPending" | "drain";
      readonly functions: LockPendingOptions["functions"];
      readonly limit: number;
    };

/** What came of it: an answer, or the code of an error. */
export interface Answer {
  readonly value?: unknown;
  readonly code?: string;
}

/** Somebody with a connection of its own who competes with others. */
export interface Contender {
  readonly name: string;
  ask(command: Command): Promise<Answer>;
}

/** A contender on a database that it alone has opened. */
export function contender(database: Database, name: string): Contender {
  const store = executions(database);
  const context = executionContext(database);
  const { clock, ids } = context;
  const holder = { executor: ids.nextId("Exr"), run: ids.nextId("Run") };
  const lock = async (
    { functions, limit }: Extract<Command, { readonly limit: number }>,
    rounds: number,
  ): Promise<readonly string[]> => {
    const found: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const { locked } = await store.lockPending({
        functions,
        limit,
        holder,
        lease: "1h",
      });
      if (locked.length === 0) break;
      found.push(...locked.map(({ id }) => id));
    }
    return found;
  };
  const obey = (command: Command): Promise<unknown> => {
    switch (command.do) {
      case "finish":
        return store.finish(command.id, command.version, {
          kind: "completed",
          value: name,
        });
      case "expireLock": {
        const { id, at } = command;
        return database.write(expireLock(context), { id, at, random: 0 });
      }
      case "cancelDelay":
        return store.cancelDelay(command.delay);
      case "expireDelay":
        return database.write(answerDelay, {
          delay: command.delay,
          at: clock.now(),
          outcome: "expired",
        });
      case "lockPending":
        return lock(command, 1);
      default:
        return lock(command, Number.POSITIVE_INFINITY);
    }
  };
  return {
    name,
    async ask(command) {
      try {
        return { value: await obey(command) };
      } catch (error) {
        if (!isHoldfastError(error)) throw error;
        return { code: error.code };
      }
    },
  };
}
