import { isHoldfastError } from "../../../src/model/errors.ts";
import { delayId } from "../../../src/model/ids/delay-id.ts";
import { childId } from "../../../src/model/ids/execution-id.ts";
import { answerDelay, answerDueDelays } from "../../fixtures/execution-operations.ts";
import { expireDeadline, expireLock } from "../../../src/stores/execution/timers/expire.ts";
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
import type { ExecutionModel } from "./model.ts";

/**
 * Ids are few, so that calls meet; inputs are two, so that some of them clash.
 * Not those of children: one whose parent has asked for it with another input
 * is what `maintenance.check` reports, and rightly.
 */
function newcomer(model: ExecutionModel, step: Step): ExecutionDraft {
  const { set, index, inMs, flag, role, seen } = step;
  const parent = model.target(step).id;
  const isChild = step.versionBy === 0 && step.fence === "right";
  return {
    id: isChild ? childId(parent, setOf(set), index) : `run-${index}`,
    function: functions[set] ?? "",
    input: isChild ? { index } : { flag },
    role,
    ...(inMs > 10 && { startAt: { in: inMs } }),
    ...(seen === 1 && { deadline: Math.max(0, inMs) }),
    ...(seen === 2 && { isPaused: true }),
    ...(flag && { concurrencyKey: `key-${set}`, tags: ["a", `t${index}`] }),
    ...(seen === 3 && { codeVersion: `v${index}` }),
  };
}

function lockOptions(model: ExecutionModel, step: Step): LockOptions {
  return {
    holder: model.worker(step),
    lease: Math.max(0, step.inMs),
    ...(step.seen > 0 && { retry }),
    ...(step.seen === 3 && { codeVersion: `v${step.index}` }),
  };
}

type Call = (model: ExecutionModel, step: Step) => Promise<unknown>;

export const calls: Readonly<Record<StepName, Call>> = {
  // Forward most of the time; real clocks are set back too.
  clock: (model, { inMs, index, flag }) => {
    const byMs = flag && index === 3 ? -inMs : inMs;
    model.clock.set(Math.max(0, model.clock.now() + byMs));
    return Promise.resolve();
  },
  create: (model, step) => model.store.create(newcomer(model, step)),
  createLocked: (model, step) =>
    model.store.createLocked(newcomer(model, step), lockOptions(model, step)),
  append: (model, step) => {
    const place = model.place(step);
    const events = step.events.map((draft) => eventOfDraft(place, draft));
    const children = step.events.flatMap((draft) => childrenOfDraft(place, draft));
    return model.store.append(place.id, model.version(step), events, {
      ...model.fence(step),
      ...(children.length > 0 && { children }),
      ...(step.index === 2 && {
        withdraw: [delayId(place.id, setOf(step.set, place.continuations), 1)],
      }),
      ...(step.flag && { key: model.key(step) }),
    });
  },
  finish: (model, step) =>
    model.store.finish(
      model.target(step).id,
      model.version(step),
      step.flag
        ? { kind: "completed", value: step.index }
        : { kind: "failed", error: { name: "Error", message: "no" } },
      { ...model.fence(step), ...(step.index > 1 && { key: model.key(step) }) },
    ),
  lockPending: (model, step) =>
    model.store.lockPending({
      ...lockOptions(model, step),
      limit: step.index,
      suspects: (["alone", "overdue", "none"] as const)[step.of % 3] ?? "overdue",
      functions: functions.map((name, place) =>
        step.flag
          ? {
              name,
              concurrencyMax: 3,
              perKeyMax: 1,
              load: place / 2,
              debt: { begun: step.index, new: step.seen },
            }
          : name,
      ),
    }),
  lock: (model, step) =>
    model.store.lock(model.target(step).id, model.version(step), lockOptions(model, step)),
  extend: (model, step) =>
    model.store.extend(model.target(step).id, model.version(step), lockOptions(model, step)),
  renew: (model, step) => model.renew(step),
  unlock: (model, step) =>
    model.store.unlock(model.target(step).id, model.version(step), {
      holder: model.fence(step).fence ?? model.worker(step),
      reason: "stepped",
      after: Math.max(0, step.inMs),
    }),
  cancelDelay: (model, step) => model.store.cancelDelay(model.delay(step)),
  expireDelay: (model, step) =>
    model.database.write(answerDelay, {
      delay: model.delay(step),
      at: model.clock.now(),
      outcome: "expired",
    }),
  expireDelays: async (model, step) => {
    const input = { delays: model.openDelays(step), at: model.clock.now() };
    const { answered } = await model.database.write(answerDueDelays, input);
    return answered > 0 ? "answered" : "nothing received";
  },
  pauseDelay: (model, step) => model.store.pauseDelay(model.delay(step)),
  unpauseDelay: (model, step) => model.store.unpauseDelay(model.delay(step)),
  signal: (model, step) =>
    model.store.signal(
      model.target(step).id,
      signals[step.set] ?? "",
      step.flag,
      step.index === 3 ? {} : { key: `key-${step.index}` },
    ),
  receive: async (model, step) =>
    (await model.store.receive(
      model.target(step).id,
      signals[step.set] ?? "",
      model.version(step),
      {
        ...model.fence(step),
        call: step.index,
        seen: seenOf(model.place(step), step),
      },
    )) ?? "nothing received",
  pause: (model, step) => model.store.pause(model.target(step).id),
  unpause: (model, step) => model.store.unpause(model.target(step).id),
  unpark: (model, step) => model.store.unpark(model.target(step).id),
  cancel: (model, step) =>
    model.store.cancel(model.target(step).id, step.flag ? { reason: "stepped" } : {}),
  cancelByForce: (model, step) => model.store.cancel(model.target(step).id, { force: true }),
  cancelActivity: (model, step) => model.store.cancelActivity(model.target(step).id),
  resolve: (model, step) =>
    model.store.resolve(model.target(step).id, {
      kind: "completed",
      value: step.flag,
    }),
  setProgress: (model, step) =>
    model.store.setProgress(
      model.target(step).id,
      step.flag ? { done: step.index } : null,
      model.fence(step),
    ),
  expireLock: (model, step) =>
    model.database.write(expireLock(model.context), {
      id: model.target(step).id,
      at: model.clock.now(),
      random: step.index / 4,
    }),
  expireDeadline: (model, step) =>
    model.database.write(expireDeadline(model.context), {
      id: model.target(step).id,
      at: model.clock.now(),
    }),
  releaseDead: (model, step) =>
    model.database.write(releaseExecution(model.context), {
      id: model.target(step).id,
      owner: model.database.owner,
      at: model.clock.now(),
      random: step.index / 4,
    }),
  fork: (model, step) =>
    model.store.fork(
      model.target(step).id,
      Math.max(0, Math.min(model.target(step).version, step.of)),
      { id: `fork-${step.index}` },
    ),
  // Half of the time it is stopped after the first rows.
  pruneHistory: async (model, step) => {
    const stop = new AbortController();
    const { flag, index } = step;
    try {
      return await model.store.pruneHistory(model.target(step).id, {
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
  retry: (model, step) => model.store.retry(model.target(step).id, { id: `retry-${step.index}` }),
};
