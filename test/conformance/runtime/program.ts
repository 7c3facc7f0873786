import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Activity, Signal, Workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import type { WorkflowContext } from "../../../src/runtime/definition/workflow-context.ts";

/**
 * Random workflows. What a workflow is given when its code is run, in which
 * order, must be the same whenever it is run again, whatever the timing was.
 * So each of these writes down everything that it sees, and two runs of its
 * code are compared: one must be the beginning of the other.
 */
export type Node =
  | {
      readonly kind: "step";
      readonly how: "sync" | "async" | "fails" | "flaky";
      readonly announced: boolean;
      readonly value: number;
    }
  | {
      readonly kind: "transaction";
      readonly fails: boolean;
      /** The part of the stores that it uses: it reads its own run, or sends it a ping. */
      readonly stores: "none" | "reads" | "sends";
      readonly value: number;
    }
  | { readonly kind: "sleep"; readonly ms: number }
  | {
      readonly kind: "child";
      readonly value: number;
      readonly ms: number;
      readonly fails: boolean;
    }
  | {
      readonly kind: "activity";
      readonly value: number;
      readonly fails: boolean;
    }
  | { readonly kind: "receive"; readonly timeoutMs: number }
  | { readonly kind: "question"; readonly timeoutMs: number }
  | { readonly kind: "draw" }
  | { readonly kind: "awaits"; readonly count: number }
  | { readonly kind: "forgotten"; readonly announced: boolean; readonly value: number }
  | { readonly kind: "patch"; readonly id: string }
  | {
      readonly kind: "all" | "race" | "settled";
      readonly branches: readonly (readonly Node[])[];
    }
  | {
      readonly kind: "loop";
      readonly times: number;
      readonly body: readonly Node[];
    }
  | {
      readonly kind: "choice";
      readonly even: readonly Node[];
      readonly odd: readonly Node[];
    };

/** Everything that the code of a run saw, each time it was run. */
export type Traces = Map<string, string[][]>;

/** Called when the code of a run begins; what it gives is called with each thing that the code sees. */
type Watch = (id: string) => (line: string) => void;

/** Keeps what is seen, for a test that runs the programs itself. */
export function tracedIn(traces: Traces): Watch {
  return (id) => {
    const trace: string[] = [];
    const known = traces.get(id);
    if (known === undefined) traces.set(id, [trace]);
    else known.push(trace);
    return (line) => trace.push(line);
  };
}

export const ping: Signal<number> = signal<number>("ping");

const nap: Workflow<{ value: number; ms: number; fails: boolean }, number> = workflow(
  "nap",
  async (ctx, { value, ms, fails }: { value: number; ms: number; fails: boolean }) => {
    await ctx.sleep(ms);
    if (fails) throw new Error(`child ${value}`);
    return value * 10;
  },
);

const work: Activity<{ value: number; fails: boolean }, number> = activity(
  "work",
  { retry: { maxRetries: 0 } },
  async (_, { value, fails }: { value: number; fails: boolean }) => {
    await shortly();
    if (fails) throw new Error(`activity ${value}`);
    return value * 100;
  },
);

/** Resolves when the event loop has come round: what it is timed by is not recorded. */
function shortly(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The executions of the database that a program runs on. Only bodies of transactions ask for them. */
type Stores = () => Executions;

/** The workflow that runs a program, and what it needs. */
export function programFunctions(
  watch: Watch,
  stores: Stores,
): {
  readonly program: Workflow<readonly Node[], string>;
  readonly all: readonly (Workflow<never, unknown> | Activity<never, unknown>)[];
} {
  const program = workflow("program", async (ctx, nodes: readonly Node[]) => {
    const trace: string[] = [];
    const saw = watch(ctx.id);
    const see = (where: string, value: unknown): number => {
      const line = `${where} ${JSON.stringify(value)} at ${ctx.now()}`;
      trace.push(line);
      saw(line);
      return typeof value === "number" ? value : 0;
    };
    await runNodes(ctx, nodes, "", see, stores);
    return trace.join("\n");
  });
  return { program, all: [program, nap, work] };
}

type See = (where: string, value: unknown) => number;

async function runNodes(
  ctx: WorkflowContext,
  nodes: readonly Node[],
  path: string,
  see: See,
  stores: Stores,
): Promise<number> {
  let last = 0;
  for (const [index, node] of nodes.entries()) {
    const where = `${path}/${index}:${node.kind}`;
    try {
      last = await runNode(ctx, node, where, see, stores, last);
    } catch (error) {
      const { name, message } = error as Error;
      see(where, `${name}: ${message}`);
    }
  }
  return last;
}

async function runNode(
  ctx: WorkflowContext,
  node: Node,
  where: string,
  see: See,
  stores: Stores,
  last: number,
): Promise<number> {
  switch (node.kind) {
    case "step":
      return see(where, await runStep(ctx, node));
    case "transaction":
      return see(where, await runTransaction(ctx, node, where, stores));
    case "sleep":
      return see(where, (await ctx.sleep(node.ms)) ?? -1);
    case "child":
      return see(where, await ctx.call(nap, node));
    case "activity":
      return see(where, await ctx.call(work, node));
    case "receive":
      return see(where, (await ctx.receive(ping, { timeout: node.timeoutMs })) ?? -2);
    case "question": {
      const schema = { type: "number" };
      const question = ctx.external<number>({ about: where, schema, timeout: node.timeoutMs });
      return see(where, (await question.result()) ?? -3);
    }
    case "draw":
      see(where, ctx.uuid());
      return see(where, Math.floor(ctx.random() * 10));
    case "awaits":
      for (let turn = 0; turn < node.count; turn += 1) await Promise.resolve();
      return see(where, node.count);
    case "forgotten":
      void ctx.step("forgotten", { announced: node.announced }, async () => {
        await shortly();
        throw new Error("nobody asked");
      });
      return see(where, node.value);
    case "patch":
      return see(where, Number(ctx.patched(node.id)));
    case "loop": {
      let sum = 0;
      for (let turn = 0; turn < node.times; turn += 1)
        sum += await runNodes(ctx, node.body, `${where}#${turn}`, see, stores);
      return see(where, sum);
    }
    case "choice":
      return runNodes(ctx, last % 2 === 0 ? node.even : node.odd, where, see, stores);
    default: {
      const branches = node.branches.map((branch, index) =>
        runNodes(ctx, branch, `${where}[${index}]`, see, stores),
      );
      if (node.kind === "race") return see(where, await Promise.race(branches));
      if (node.kind === "all")
        return see(
          where,
          (await Promise.all(branches)).reduce((a, b) => a + b, 0),
        );
      return see(where, (await Promise.allSettled(branches)).length);
    }
  }
}

function runTransaction(
  ctx: WorkflowContext,
  { fails, stores: used, value }: Extract<Node, { kind: "transaction" }>,
  where: string,
  stores: Stores,
): Promise<number> {
  const isolation = used === "none" ? "serializable" : "readCommitted";
  return ctx.transaction(where.slice(-100), { isolation }, function* () {
    if (used === "reads") yield* stores().get.prepare(ctx.id)();
    if (used === "sends") yield* stores().signal.prepare(ctx.id, ping.name, value)();
    if (fails) throw new TypeError(`transaction ${value}`);
    return value;
  });
}

function runStep(
  ctx: WorkflowContext,
  { how, announced, value }: Extract<Node, { kind: "step" }>,
): Promise<number> {
  const retry = { maxRetries: how === "flaky" ? 3 : 0, backoff: 1 };
  return ctx.step(`step ${value}`, { retry, announced }, ({ attempt }) => {
    if (how === "sync") return value;
    return shortly().then(() => {
      if (how === "fails" || (how === "flaky" && attempt < 2))
        throw new RangeError(`step ${value}`);
      return value;
    });
  });
}

/** Two runs of the same code, the first of which may have been cut off. */
export function disagreement(traces: readonly (readonly string[])[]): string | undefined {
  for (const trace of traces)
    for (const other of traces) {
      const both = Math.min(trace.length, other.length);
      for (let at = 0; at < both; at += 1)
        if (trace[at] !== other[at]) return `at ${at}:\n  ${trace[at]}\n  ${other[at]}`;
    }
  return undefined;
}
