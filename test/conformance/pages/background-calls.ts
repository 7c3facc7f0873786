import type { Rows } from "./fixture.ts";
import { calls, claimant, result, waits } from "./valid-call.ts";
import type { Calls } from "./valid-call.ts";

const scope = { kind: "turn", id: "t", session: "s" };
const envelope = { kind: "ask", input: 1 };
const source = { type: "webhook", key: "w" };
const terms = {
  source,
  target: { kind: "tool" },
  grant: { label: "mine" },
};

export function processCalls({ processLease }: Rows): Calls {
  const wake = { input: { kind: "constant", value: 1 } };
  const eventTypes = [{ name: "progress", wake }];
  const target = { session: "s" };
  const told = { eventTypes, originator: target, wakeTarget: target };
  const draft = { id: "q", kind: "tool", ...told };
  const execution = { function: "ci/build", input: 1 };
  const grants = [{ scope: "s", descriptor: { label: "mine" } }];
  const spawned = { id: "q", kind: "workflow", execution, grants, ...told };
  return calls({
    register: {
      args: [{ ...draft, input: 1 }, {}],
      free: ["0.input", "0.eventTypes"],
    },
    append: {
      args: ["p", { type: "signal.go", fence: processLease, wakeTarget: target }, {}],
      free: ["1.payload", "1.fence"],
    },
    complete: { args: ["p", result, {}], free: ["1.value"] },
    cancel: ["p", {}],
    signal: { args: ["p", "go", 1, { key: "k" }], free: ["2"] },
    setWait: ["p", { signal: "go", ordinal: 1 }, {}],
    clearWait: ["p", {}],
    setExternalRef: {
      args: ["p", { backend: "b", id: "i", metadata: 1 }, {}],
      free: ["1.metadata"],
    },
    grant: ["p", "s", {}, {}],
    revoke: ["p", "s", {}],
    transfer: ["s", "s", ["p"], {}],
    spawn: {
      args: [spawned, {}],
      free: ["0.execution.input", "0.execution.metadata", "0.eventTypes"],
    },
    prune: [{ olderThan: 0 }, {}],
    hasHandle: ["p", "s", {}],
    handles: ["s", {}],
    grants: ["p", {}],
    get: ["p", {}],
    output: ["p", {}],
    events: ["p", {}],
    recent: ["p", 1, {}],
    count: { args: ["p", "signal.go", undefined, {}], free: ["2"] },
    list: [{}],
    waitForEvent: waits("p", {}),
    waitForSignal: waits("p", "go", 1),
    waitForEnd: waits("p"),
    changes: [{}],
    claim: ["p", claimant, {}],
    start: { args: [processLease, {}], free: ["0"] },
    renew: { args: [processLease, {}], free: ["0"] },
    release: { args: [processLease, {}], free: ["0"] },
    holder: ["p", {}],
    keep: { args: [processLease, {}], free: ["0"] },
    worklist: [{}],
    abandon: ["p", "why", {}],
  });
}

export function effectCalls({ effectClaim, effectHolder }: Rows): Calls {
  const named = [scope, "k", envelope];
  const other = [scope, "other", envelope];
  const retry = { maxRetries: 1, backoff: 1, backoffMax: 1 };
  const input = { free: ["2.input"] };
  const kept = { ...input, isKept: true, mayWrite: true } as const;
  return calls({
    execute: { args: [...named, () => 1, { retry }], ...kept },
    replay: { args: [...named, { retry }], ...input },
    transact: { args: [...named, noEffect, {}], ...kept },
    sleep: { ...waits(scope, "nap", "1h"), mayWrite: true },
    claim: { args: [...other, {}], ...input },
    reclaim: {
      args: [scope, "held", envelope, effectHolder, {}],
      free: ["2.input", "3"],
    },
    renew: { args: [effectClaim, {}], free: ["0"] },
    // A value that is too large is recorded as a failure, and then refused.
    complete: { args: [effectClaim, 1, {}], free: ["0", "1"], mayWrite: true },
    fail: { args: [effectClaim, new Error("no"), {}], free: ["0", "1"] },
    release: { args: [effectClaim, {}], free: ["0"] },
    record: { args: [...other, 1, {}], free: ["2.input", "3"], mayWrite: true },
    get: [scope, "held", {}],
    list: [scope, {}],
    forget: [scope, {}],
  });
}

function* noEffect(): Generator<never, number> {
  return 1;
}

export function awaitCalls({ token }: Rows): Calls {
  return calls({
    open: [scope, "new", {}],
    wait: waits(scope, "open"),
    cancel: [scope, "open", {}],
    revoke: [scope, "open", {}],
    resolve: { args: [token, 1, {}], free: ["1"] },
    fail: { args: [token, new Error("no"), {}], free: ["1"] },
    get: [scope, "open", {}],
    list: ["s", { scope: { kind: "turn", id: "t" } }],
    revokeAll: ["s", {}],
    forget: [scope, {}],
  });
}

export function commandCalls(): Calls {
  const draft = { id: "q", kind: "tool", input: 1 };
  const operation = { kind: "operation", id: "o" };
  const several = { isKept: true, mayWrite: true } as const;
  return calls({
    start: { args: [scope, draft, {}], free: ["1.input"], ...several },
    list: { args: [scope, "s", {}], ...several },
    transfer: { args: [scope, "s", "s", ["p"], {}], ...several },
    waitForEnd: { ...waits(scope, "p"), ...several },
    cancel: { args: [scope, "p", {}], ...several },
    signal: {
      args: [scope, "p", "go", 1, { key: "k" }],
      free: ["3"],
      ...several,
    },
    deleteSession: { args: [operation, "gone", {}], ...several },
  });
}

export function triggerCalls(): Calls {
  const policy = { olderThan: 0 };
  return calls({
    subscribe: {
      args: [{ key: "k", ...terms }, {}],
      free: ["0.payloadSchema", "0.arguments", "0.target.input"],
    },
    revise: {
      args: ["on", terms, {}],
      free: ["1.payloadSchema", "1.arguments", "1.target.input"],
    },
    enable: ["on", {}],
    disable: ["on", {}],
    delete: ["on", {}],
    get: ["on", {}],
    list: [{}],
    sourceKey: { args: ["webhook", 1], free: ["1"] },
    record: {
      args: [{ key: "new", source, payload: 1 }, {}],
      free: ["0.payload"],
    },
    occurrence: ["o", {}],
    occurrences: [{ source }],
    cancelOccurrence: ["o", {}],
    unstarted: [{}],
    removeOccurrences: [policy, {}],
    run: { args: [{}], isKept: true },
  });
}

export function scheduleCalls(): Calls {
  const hourly = { every: "1h" };
  return calls({
    put: ["report", "hourly", hourly, {}],
    pause: ["report", "daily", {}],
    remove: ["report", "daily", {}],
    get: ["report", "daily", {}],
    list: ["report", {}],
    upcoming: [hourly, {}],
    run: { args: [{ report: () => undefined }, {}], free: ["0"], isKept: true },
  });
}
