import type { Database } from "../../src/kernel.ts";
import type { Orders } from "./prepare-actions.ts";

/** Does something that can be repeated, and says what it does outside of the database. */
type Action = (
  database: Database,
  orders: Orders,
  say: (line: string) => unknown,
) => Promise<unknown>;

const registry = () => import("./actions/registry.ts");
const effects = () => import("./actions/effects.ts");
const triggers = () => import("./actions/triggers.ts");
const turns = () => import("./actions/turns.ts");

/** What the processes that are killed do. Each loads only the stores that it needs, since that is most of its time. */
export const actions = {
  append: async (...given) => (await registry()).append(given[0]),
  spawn: async (...given) => (await registry()).spawn(given[0]),
  resolve: async (...given) => (await registry()).resolve(given[0]),
  ask: async (...given) => (await registry()).ask(given[0]),
  finish: async (...given) => (await registry()).finish(given[0], given[1]),
  work: async (...given) => (await registry()).work(given[0]),
  start: async (...given) => (await effects()).start(given[0]),
  answer: async (...given) => (await effects()).answer(given[0], given[1]),
  execute: async (...given) => (await effects()).execute(...given),
  record: async (...given) => (await triggers()).record(given[0]),
  fire: async (...given) => (await triggers()).fire(given[0]),
  commit: async (...given) => (await turns()).commit(given[0], given[1]),
} satisfies Record<string, Action>;

export type ActionName = keyof typeof actions;
