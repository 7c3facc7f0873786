import { isHoldfastError } from "../../../src/model/errors.ts";
import { delayId } from "../../../src/model/ids/delay-id.ts";
import { childId } from "../../../src/model/ids/execution-id.ts";
import {
  answerDelay,
  answerDueDelays,
} from "../../fixtures/execution-operations.ts";
import {
  expireDeadline,
  expireLock,
} from "../../../src/stores/execution/timers/expire.ts";
import type { LockOptions } from "../../../src/stores/execution/lock/terms.ts";
import type { ExecutionDraft } from "../../../src/stores/execution/log/create.ts";
import { releaseExecution } from "../../../src/stores/execution/timers/release.ts";
import {
  childrenOfDraft,
  eventOfDraft,
  functions,
  retry,
  seenOf,
  setOf,
  signals,
} from "./drafts.ts";
import type { Step, StepName } from "./steps.ts";
import type { ExecutionWorld } from "./model.ts";

/** Ids are few, so that calls meet; inputs are two, so that some of them clash. */
function newcomer(world: ExecutionWorld, step: Step): ExecutionDraft {
  const { set, index, inMs, flag, role, seen } = step;
  const parent = world.target(step).id;
  const isChild = step.versionBy === 0 && step.fence === "right";
  return {
    id: isChild ? childId(parent, setOf(set), index) : `run-${index}`,
    function: functions[set] ?? "",
    input: { flag },
    role,
    ...(inMs > 10 && { startAt: { in: inMs } }),
    ...(seen === 1 && { deadline: Math.max(0, inMs) }),
    ...(seen === 2 && { isPaused: true }),
    ...(flag && { concurrencyKey: `key-${set}`, tags: ["a", `t${index}`] }),
    ...(seen === 3 && { codeVersion: `v${index}` }),
  };
}

function lockOptions(world: ExecutionWorld, step: Step): LockOptions {
  return {
    holder: world.worker(step),
    lease: Math.max(0, step.inMs),
    ...(step.seen > 0 && { retry }),
    ...(step.seen === 3 && { codeVersion: `v${step.index}` }),
  };
}

type Call = (world: ExecutionWorld, step: Step) => Promise<unknown>;

export const calls: Readonly<Record<StepName, Call>> = {
  // Forward most of the time; real clocks are set back too.
  clock: (world, { inMs, index, flag }) => {
    const byMs = flag && index === 3 ? -inMs : inMs;
    world.clock.set(Math.max(0, world.clock.now() + byMs));
    return Promise.resolve();
  },
  create: (world, step) => world.store.create(newcomer(world, step)),
  createLocked: (world, step) =>
    world.store.createLocked(newcomer(world, step), lockOptions(world, step)),
  append: (world, step) => {
    const place = world.place(step);
    const events = step.events.map((draft) => eventOfDraft(place, draft));
    const children = step.events.flatMap((draft) =>
      childrenOfDraft(place, draft),
    );
    return world.store.append(place.id, world.version(step), events, {
      ...world.fence(step),
      ...(children.length > 0 && { children }),
      ...(step.index === 2 && {
        withdraw: [delayId(place.id, setOf(step.set, place.continuations), 1)],
      }),
      ...(step.flag && { key: world.key(step) }),
    });
  },
  finish: (world, step) =>
    world.store.finish(
      world.target(step).id,
      world.version(step),
      step.flag
        ? { kind: "completed", value: step.index }
        : { kind: "failed", error: { name: "Error", message: "no" } },
      world.fence(step),
    ),
  lockPending: (world, step) =>
    world.store.lockPending({
      ...lockOptions(world, step),
      limit: step.index,
      functions: functions.map((name) =>
        step.flag ? { name, concurrencyMax: 3, perKeyMax: 1 } : name,
      ),
    }),
  lock: (world, step) =>
    world.store.lock(
      world.target(step).id,
      world.version(step),
      lockOptions(world, step),
    ),
  extend: (world, step) =>
    world.store.extend(
      world.target(step).id,
      world.version(step),
      lockOptions(world, step),
    ),
  renew: (world, step) => world.renew(step),
  unlock: (world, step) =>
    world.store.unlock(world.target(step).id, world.version(step), {
      holder: world.fence(step).fence ?? world.worker(step),
      reason: "stepped",
      after: Math.max(0, step.inMs),
    }),
  cancelDelay: (world, step) => world.store.cancelDelay(world.delay(step)),
  expireDelay: (world, step) =>
    world.database.write(answerDelay, {
      delay: world.delay(step),
      at: world.clock.now(),
      outcome: "expired",
    }),
  expireDelays: async (world, step) => {
    const input = { delays: world.openDelays(step), at: world.clock.now() };
    const { answered } = await world.database.write(answerDueDelays, input);
    return answered > 0 ? "answered" : "nothing received";
  },
  pauseDelay: (world, step) => world.store.pauseDelay(world.delay(step)),
  unpauseDelay: (world, step) => world.store.unpauseDelay(world.delay(step)),
  signal: (world, step) =>
    world.store.signal(
      world.target(step).id,
      signals[step.set] ?? "",
      step.flag,
      step.index === 3 ? {} : { key: `key-${step.index}` },
    ),
  receive: async (world, step) =>
    (await world.store.receive(
      world.target(step).id,
      signals[step.set] ?? "",
      world.version(step),
      {
        ...world.fence(step),
        call: step.index,
        seen: seenOf(world.place(step), step),
      },
    )) ?? "nothing received",
  pause: (world, step) => world.store.pause(world.target(step).id),
  unpause: (world, step) => world.store.unpause(world.target(step).id),
  unpark: (world, step) => world.store.unpark(world.target(step).id),
  cancel: (world, step) =>
    world.store.cancel(
      world.target(step).id,
      step.flag ? { reason: "stepped" } : {},
    ),
  cancelByForce: (world, step) =>
    world.store.cancel(world.target(step).id, { force: true }),
  cancelActivity: (world, step) =>
    world.store.cancelActivity(world.target(step).id),
  resolve: (world, step) =>
    world.store.resolve(world.target(step).id, {
      kind: "completed",
      value: step.flag,
    }),
  setProgress: (world, step) =>
    world.store.setProgress(
      world.target(step).id,
      step.flag ? { done: step.index } : null,
      world.fence(step),
    ),
  expireLock: (world, step) =>
    world.database.write(expireLock(world.context), {
      id: world.target(step).id,
      at: world.clock.now(),
      random: step.index / 4,
    }),
  expireDeadline: (world, step) =>
    world.database.write(expireDeadline(world.context), {
      id: world.target(step).id,
      at: world.clock.now(),
    }),
  releaseDead: (world, step) =>
    world.database.write(releaseExecution(world.context), {
      id: world.target(step).id,
      owner: world.database.owner,
      at: world.clock.now(),
      random: step.index / 4,
    }),
  fork: (world, step) =>
    world.store.fork(
      world.target(step).id,
      Math.max(0, Math.min(world.target(step).version, step.of)),
      { id: `fork-${step.index}` },
    ),
  // Half of the time it is stopped after the first rows.
  pruneHistory: async (world, step) => {
    const stop = new AbortController();
    const { flag, index } = step;
    try {
      return await world.store.pruneHistory(world.target(step).id, {
        signal: stop.signal,
        rowsPerSlice: flag ? index : 500,
        signalMemory: index === 3 ? "30 days" : 0,
        onProgress: ({ events, responses }) => {
          if (flag && events + responses > 0) stop.abort();
        },
      });
    } catch (error) {
      if (isHoldfastError(error) && error.code === "ABORTED") return "stopped";
      throw error;
    }
  },
  retry: (world, step) =>
    world.store.retry(world.target(step).id, { id: `retry-${step.index}` }),
};
