import { bytesOf } from "../blob/owners.ts";
import {
  awaitCalls,
  commandCalls,
  effectCalls,
  processCalls,
  scheduleCalls,
  triggerCalls,
} from "./background-calls.ts";
import type { PageName, Rows } from "./fixture.ts";
import { calls, claimant, result, waits } from "./valid-call.ts";
import type { Calls, ValidCall } from "./valid-call.ts";

const content = bytesOf("content");

/** One valid call of every method of every page. */
export function validCalls(rows: Rows): Readonly<Record<PageName, Calls>> {
  return {
    executions: executionCalls(rows),
    sessions: sessionCalls(rows),
    queue: queueCalls(rows),
    leases: leaseCalls(rows),
    processes: processCalls(rows),
    effects: effectCalls(rows),
    awaitEvents: awaitCalls(rows),
    processEffects: commandCalls(),
    triggers: triggerCalls(),
    schedules: scheduleCalls(),
    ...byteCalls(rows),
  };
}

function executionCalls({ holder, owner }: Rows): Calls {
  const retry = { maxRetries: 1, backoffMs: 1, backoffMaxMs: 1 };
  const locked = { holder, lease: "1h", retry, codeVersion: "v1" };
  const served = { name: "g", concurrencyMax: 1, perKeyMax: 1, retry };
  const delay = "Delay_a.n:x_1";
  const draft = {
    function: "f",
    input: 1,
    startAt: { in: 1 },
    tags: ["t"],
    metadata: { m: "v" },
  };
  return calls({
    create: { args: [draft, {}], free: ["0.input", "0.metadata"] },
    append: appendCall(locked),
    finish: { args: ["a", 1, result, {}], free: ["2.value"] },
    fork: ["a", 0, {}],
    retry: ["a", {}],
    pause: ["a", {}],
    unpause: ["a", {}],
    unpark: ["a", {}],
    cancel: ["a", {}],
    cancelActivity: ["act", {}],
    resolve: { args: ["a", result, {}], free: ["1.value"] },
    answer: { args: ["a", 1, {}], free: ["1"] },
    questions: [{ function: "f", run: "a", tag: "t", askedBefore: 1, limit: 1 }],
    signal: { args: ["a", "go", 1, {}], free: ["2"] },
    receive: ["held", "go", 2, { fence: holder }],
    setProgress: { args: ["held", 1, { fence: holder }], free: ["1"] },
    cancelDelay: [delay, {}],
    pauseDelay: [delay, {}],
    unpauseDelay: [delay, {}],
    lockPending: [{ ...locked, functions: ["f", served], limit: 1 }],
    lock: ["a", 1, locked],
    extend: ["held", 2, locked],
    createLocked: {
      args: [draft, locked],
      free: ["0.input", "0.metadata"],
    },
    renew: [[{ id: "held", key: 1 }], { holder, lease: "1h" }],
    unlock: ["held", 2, { holder, reason: "r" }],
    ...executionReads(owner),
  });
}

function appendCall(locked: object): ValidCall {
  const joinSet = "n:x";
  const child = "a.n:x_1";
  const events = [
    {
      kind: "stepFinished",
      name: "step",
      input: 1,
      outcome: "completed",
      value: 1,
    },
    { kind: "joinSetCreated", joinSet },
    { kind: "childRequested", joinSet, child, function: "g" },
    { kind: "scheduled", execution: "beside", function: "g", startAt: "now" },
    { kind: "continued", input: 1, seen: 0, unread: [] },
  ];
  const children = [
    { id: child, function: "g", locked },
    { id: "beside", function: "g" },
  ];
  return {
    args: ["a", 1, events, { children, withdraw: ["Delay_a.n:x_9"] }],
    free: ["2.0.input", "2.0.value", "2.4.input"],
  };
}

function executionReads(owner: string): Calls {
  const entry = { level: "info", message: "m", data: 1 };
  return calls({
    nextTimerAt: [{}],
    waitForTimer: waits(),
    expireTimers: [{}],
    releaseDead: [owner],
    waitForPending: waits(["f"]),
    waitForResponses: waits("a", 0),
    waitForResult: waits("a"),
    get: ["a", {}],
    load: ["a", {}],
    created: ["a", {}],
    result: ["done", {}],
    event: ["a", 0, {}],
    lastEvent: ["a", {}],
    events: ["a", {}],
    responses: ["a", {}],
    list: [{}],
    cancelling: [{ function: "f" }],
    tree: ["a", {}],
    count: [{}],
    log: { args: ["a", [entry], {}], free: ["1.0.data"] },
    logs: ["a", {}],
    addBacktraces: ["a", [{ from: 0, to: 1, stack: "at a.ts:1" }], {}],
    backtrace: ["a", { version: 0 }, {}],
    removeFinished: [{ olderThan: "1h", results: ["failed"] }, {}],
    pruneHistory: ["a", {}],
    erase: ["done", {}],
  });
}

function sessionCalls({ handle, lease, attachment }: Rows): Calls {
  const turn = {
    turn: "t1",
    fence: lease,
    nodes: [{ kind: "message", payload: 1, parent: { id: "n" } }],
    leaf: { ordinal: 0 },
    attachments: [attachment],
    components: { plan: { version: 1, value: 1 } },
    frames: [{ id: "f", reason: "start", data: 1, state: 1 }],
    currentFrame: "f",
    usage: [{ source: "chat", model: "m", inputTokens: 1, outputTokens: 1 }],
  };
  const root = { kind: "root" };
  return calls({
    create: ["new", { relation: { kind: "child", of: "s" }, agent: "support" }, {}],
    assign: ["s", "support", {}],
    stop: ["s", { reason: "enough" }],
    nodes: ["s", ["n"], {}],
    open: ["s", {}],
    lock: ["s", {}],
    meta: ["s", {}],
    saveMeta: ["s", { name: "name", model: null, cwd: null, relation: root }, {}],
    list: [{}],
    fork: ["s", "fork", { meta: { name: "fork", relation: root } }],
    commit: {
      args: [handle, turn, {}],
      free: [
        "0",
        "1.nodes.0.payload",
        "1.components.plan.value",
        "1.frames.0.data",
        "1.frames.0.state",
        "1.config",
        "1.fence",
      ],
    },
    head: ["s", {}],
    load: ["s", {}],
    path: ["s", {}],
    graph: ["s", { order: "newest", kind: "message", payloads: false }],
    node: ["s", "n", {}],
    components: ["s", {}],
    usage: ["s", {}],
    delete: { args: ["gone", {}], isKept: true },
    erase: { args: ["gone", {}], isKept: true },
    reclaim: { args: [{}], isKept: true },
    tombstone: { args: ["s", ["n"], { fence: lease }], free: ["2.fence"] },
    vacuum: ["s", {}],
    sizes: ["s", {}],
  });
}

function queueCalls({ lease, batch }: Rows): Calls {
  const claim = { claim: "c", batches: [batch] };
  const items = [{ kind: "input", payload: 1 }];
  return calls({
    enqueue: {
      args: ["s", { items, source: { process: "p", sequence: 1 } }, {}],
      free: ["1.items.0.payload"],
    },
    cancel: ["s", batch, {}],
    list: ["s", {}],
    purgeSourceKeys: [{}],
    claimTurn: { args: [lease, {}], free: ["0"] },
    claimCommand: { args: [lease, {}], free: ["0"] },
    claimBatches: { args: [lease, [batch], {}], free: ["0"] },
    claimFor: ["s", { boundary: "idle", limit: 1, key: "k" }],
    retry: ["s", {}],
    abandon: ["s", claim, {}],
    completeWithoutCommit: { args: [lease, [claim], {}], free: ["0"] },
    waitForWork: waits("s"),
  });
}

function leaseCalls({ lease }: Rows): Calls {
  return calls({
    acquire: ["s", claimant, {}],
    reclaim: {
      args: ["s", claimant, { fence: 1, process: null }, {}],
      free: ["2"],
    },
    waitForLease: { ...waits("s", claimant), mayWrite: true },
    renew: { args: [lease, {}], free: ["0"] },
    release: { args: [lease, {}], free: ["0"] },
    read: ["s", {}],
    keep: { args: [lease, {}], free: ["0"] },
  });
}

function byteCalls({
  hash,
  attachment,
}: Rows): Pick<
  Readonly<Record<PageName, Calls>>,
  "blobs" | "attachments" | "sessionAttachments" | "artifacts" | "maintenance"
> {
  const image = { mediaType: "image/png" };
  return {
    blobs: calls({
      put: [content, { kind: { name: "k", isCompressible: true } }],
      get: [hash, {}],
      keep: [hash, "invoice/7", {}],
      release: [hash, "invoice/7", {}],
      keeps: [{}],
    }),
    attachments: calls({
      put: { args: ["s", content, image], isKept: true },
      get: ["s", attachment],
      list: ["s", {}],
      listUncommitted: ["s", 1_000, {}],
      commit: ["s", [attachment], {}],
      forget: ["s", attachment, {}],
      ofSession: ["s"],
      sweep: [{}],
      removeForgotten: [{}],
    }),
    sessionAttachments: calls({
      put: { args: [content, image], isKept: true },
      get: [attachment],
      committed: [[attachment]],
    }),
    artifacts: calls({
      put: ["space", "name", content, {}],
      get: ["space", "name", {}],
      load: ["space", "name", {}],
      remove: ["space", "name", {}],
      list: ["space", {}],
    }),
    maintenance: calls({
      collect: [{}],
      afterCommit: [],
      check: [{}],
      repair: [{}],
      sizes: [{}],
    }),
  };
}
