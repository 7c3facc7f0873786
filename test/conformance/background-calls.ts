import { awaitEvents, effects, processEffects } from "../../src/effects.ts";
import { processes } from "../../src/processes.ts";
import { schedules, triggers, type Triggers } from "../../src/triggers.ts";
import type { Database } from "../../src/sql/database.ts";
import type { EffectClaim } from "../../src/stores/effect/claim.ts";
import type { ProcessLease } from "../../src/stores/process/lease.ts";
import { call, methodsOf, more, wait } from "./border-calls.ts";
import type { Call, Kind } from "./border-calls.ts";

type Position = readonly [Kind, unknown];

const process: Position = ["id", "p"];
const owner: Position = ["owner", "s"];
const draft: Position = ["object", { id: "q", kind: "tool" }];
const spawned: Position = [
  "object",
  { id: "q", kind: "workflow", execution: { function: "ci/build" } },
];
const source = { type: "webhook", key: "w" };
const terms = { source, target: { kind: "tool" } };
const scope: Position = ["object", { kind: "turn", id: "t", session: "s" }];
const holder: Position = ["session", "s"];
const key: Position = ["text", "k"];
const envelope: Position = ["object", { kind: "ask", input: 1 }];
const value: Position = ["any", 1];
const pages = [...wait, "limit"];

/** A lease and a claim that count, so that nothing else is wrong with a call. */
export interface HeldWork {
  readonly lease: ProcessLease;
  readonly claim: EffectClaim;
}

/** Every call of every facade of what runs beside the turns of sessions, with arguments that are right. */
export function backgroundCalls(database: Database, held: HeldWork): readonly Call[] {
  return [
    registryCalls,
    registryReads,
    registryLeases,
    effectCalls,
    commandCalls,
    awaitCalls,
    triggerCalls,
    scheduleCalls,
  ].flatMap((part) => part(database, held));
}

function registryCalls(database: Database): readonly Call[] {
  const own = methodsOf(processes(database));
  const fenced = [...wait, "fence"];
  const output: Position = ["object", { kind: "completed", value: 1 }];
  return [
    call("register", own.register, [draft, more], wait),
    call("append", own.append, [process, ["object", { type: "signal.go" }], more], wait),
    call("complete", own.complete, [process, output, more], fenced),
    call("cancel process", own.cancel, [process, more], [...wait, "reason"]),
    call("signal", own.signal, [process, ["text", "go"], value, ["object", { key: "k" }]], ["key"]),
    call("setWait", own.setWait, [process, ["object", { signal: "go", ordinal: 1 }], more], fenced),
    call("clearWait", own.clearWait, [process, more], fenced),
    call(
      "setExternalRef",
      own.setExternalRef,
      [process, ["object", { backend: "b", id: "i" }], more],
      fenced,
    ),
    call("grant", own.grant, [process, holder, ["options", {}], more], wait),
    call("revoke handle", own.revoke, [process, holder, more], wait),
    call("transfer", own.transfer, [holder, holder, ["list", ["p"]], more], wait),
    call("spawn", own.spawn, [spawned, more], wait),
    call(
      "prune",
      own.prune,
      [["object", { olderThan: 0 }], more],
      ["signal", "rowsPerSlice", "onProgress"],
    ),
  ];
}

function registryReads(database: Database): readonly Call[] {
  const own = methodsOf(processes(database));
  return [
    call("hasHandle", own.hasHandle, [process, holder, more], wait),
    call("handles", own.handles, [holder, more], [...pages, "after", "live"]),
    call("grants", own.grants, [process, more], [...pages, "after"]),
    call("get process", own.get, [process, more], wait),
    call("output", own.output, [process, more], wait),
    call("events", own.events, [process, more], [...pages, "after", "from", "type", "wakes"]),
    call("recent", own.recent, [process, ["count", 1], more], wait),
    call("count", own.count, [process, ["text", "type"], ["any", 1], more], wait),
    call(
      "list processes",
      own.list,
      [more],
      [...pages, "after", "status", "waiting", "definition", "kind", "orphaned"],
    ),
    call("waitForEvent", own.waitForEvent, [process, ["options", {}], more], wait),
    call("waitForSignal", own.waitForSignal, [process, ["text", "go"], ["count", 1], more], wait),
    call("waitForEnd", own.waitForEnd, [process, more], wait),
    call("changes", own.changes, [more], [...pages, "after"]),
  ];
}

function registryLeases(database: Database, held: HeldWork): readonly Call[] {
  const lease: Position = ["lease", held.lease];
  const own = methodsOf(processes(database));
  const claimant = { owner: "bob", incarnation: "1", process: null };
  const lasting = [...wait, "lease"];
  return [
    call("claim", own.claim, [process, ["object", claimant], more], lasting),
    call("start", own.start, [lease, more], wait),
    call("renew process", own.renew, [lease, more], lasting),
    call("release process", own.release, [lease, more], wait),
    call("holder", own.holder, [process, more], wait),
    call("keep process", own.keep, [lease, more], ["lease", "every"]),
    call("worklist", own.worklist, [more], [...pages, "after", "started"]),
    call("abandon process", own.abandon, [process, ["text", "why"], more], wait),
  ];
}

function effectCalls(database: Database, held: HeldWork): readonly Call[] {
  const lease: Position = ["lease", held.claim];
  const own = methodsOf(effects(database));
  const run: Position = ["function", () => 1];
  const named = [scope, key, envelope] as const;
  const tried = [...wait, "attempt"];
  return [
    call(
      "execute",
      own.execute,
      [...named, run, more],
      [...tried, "lease", "delay", "retry", "accept", "isTransient"],
    ),
    call("replay", own.replay, [...named, more], [...tried, "retry", "accept"]),
    call("transact", own.transact, [...named, run, more], tried),
    call("sleep", own.sleep, [scope, key, ["duration", 0], more], wait),
    call("claim effect", own.claim, [...named, more], [...tried, "lease", "delay", "token"]),
    call(
      "reclaim effect",
      own.reclaim,
      [...named, ["object", { process: null, fence: 1 }], more],
      [...tried, "lease", "delay", "token"],
    ),
    call("renew effect", own.renew, [lease, more], [...wait, "lease"]),
    call("complete effect", own.complete, [lease, value, more], wait),
    call("fail effect", own.fail, [lease, value, more], wait),
    call("release effect", own.release, [lease, more], wait),
    call("record effect", own.record, [...named, value, more], tried),
    call("get effect", own.get, [scope, key, more], tried),
    call("list effects", own.list, [scope, more], [...pages, "after"]),
    call("forget effects", own.forget, [scope, more], ["signal", "rowsPerSlice", "onProgress"]),
  ];
}

function commandCalls(database: Database): readonly Call[] {
  const own = methodsOf(processEffects(database));
  const called = [...wait, "call"];
  return [
    call("command start", own.start, [scope, draft, more], [...called, "grant", "descriptor"]),
    call("command list", own.list, [scope, holder, more], [...called, "live", "after", "limit"]),
    call("command transfer", own.transfer, [scope, holder, holder, ["list", ["p"]], more], called),
    call("command wait", own.waitForEnd, [scope, process, more], called),
    call("command cancel", own.cancel, [scope, process, more], [...called, "reason"]),
    call(
      "command signal",
      own.signal,
      [scope, process, ["text", "go"], value, ["object", { key: "k" }]],
      ["key"],
    ),
    call(
      "command delete",
      own.deleteSession,
      [["object", { kind: "operation", id: "o" }], holder, more],
      called,
    ),
  ];
}

function awaitCalls(database: Database): readonly Call[] {
  const own = methodsOf(awaitEvents(database));
  const slices = ["signal", "rowsPerSlice", "onProgress"];
  return [
    call("open await", own.open, [scope, key, more], [...wait, "answerWithin"]),
    call("wait", own.wait, [scope, key, more], wait),
    call("cancel await", own.cancel, [scope, key, more], wait),
    call("revoke await", own.revoke, [scope, key, more], wait),
    call("resolve", own.resolve, [["text", "token"], value, more]),
    call("fail await", own.fail, [["text", "token"], value, more]),
    call("get await", own.get, [scope, key, more], wait),
    call("list awaits", own.list, [owner, more], [...pages, "after", "scope", "state"]),
    call("revokeAll", own.revokeAll, [owner, more], [...slices, "scope"]),
    call("forget awaits", own.forget, [scope, more], slices),
  ];
}

function triggerCalls(database: Database): readonly Call[] {
  const own = methodsOf(triggers(database));
  const { record } = triggers(database);
  const name: Position = ["text", "daily"];
  return [
    call("subscribe", own.subscribe, [["object", { key: "k", ...terms }], more], wait),
    call("revise", own.revise, [name, ["object", terms], more], [...wait, "expectedRevision"]),
    call("enable", own.enable, [name, more], wait),
    call("disable", own.disable, [name, more], wait),
    call("delete subscription", own.delete, [name, more], wait),
    call("get subscription", own.get, [name, more], wait),
    call(
      "list subscriptions",
      own.list,
      [more],
      [...pages, "after", "sourceType", "sourceKey", "isEnabled"],
    ),
    call("sourceKey", own.sourceKey, [["text", "type"], value]),
    call("record", own.record, [["object", { key: "k", source }], more], wait),
    call("prepared record", (...args: Parameters<Triggers["record"]>) => record.prepare(...args), [
      ["object", { key: "k", source }],
    ]),
    call("occurrence", own.occurrence, [key, more], wait),
    call("occurrences", own.occurrences, [more], [...pages, "after", "source", "subscription"]),
    call("cancel occurrence", own.cancelOccurrence, [key, more], [...wait, "reason"]),
    call("unstarted", own.unstarted, [more], [...pages, "after"]),
    call(
      "removeOccurrences",
      own.removeOccurrences,
      [["object", { olderThan: 0 }], more],
      ["signal", "rowsPerSlice", "onProgress"],
    ),
    call("run triggers", own.run, [more], listeners),
  ];
}

const listeners = ["signal", "onFired", "onSkipped", "onError"];

function scheduleCalls(database: Database): readonly Call[] {
  const own = methodsOf(schedules(database));
  const named = [
    ["text", "report"],
    ["text", "daily"],
  ] as const;
  const hourly: Position = ["object", { every: "1h" }];
  return [
    call("put schedule", own.put, [...named, hourly, more], wait),
    call("pause", own.pause, [...named, more], wait),
    call("remove schedule", own.remove, [...named, more], wait),
    call("get schedule", own.get, [...named, more], wait),
    call("list schedules", own.list, [["text", "report"], more], [...pages, "after"]),
    call("upcoming", own.upcoming, [hourly, more], ["after", "limit"]),
    call("run schedules", own.run, [["object", {}], more], listeners),
  ];
}
