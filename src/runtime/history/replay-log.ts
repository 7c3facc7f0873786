import type { HoldfastError } from "../../model/errors.ts";
import type { ExecutionResult } from "../../model/execution/result.ts";
import { newExecution } from "../../stores/execution/log/create.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import type { Definition } from "../definition/definitions.ts";
import { HotRun } from "../run/hot-run.ts";
import type { RunHost } from "../run/run-host.ts";
import type { RunState } from "../run/run-state.ts";
import type { ExternalTokens } from "../client/external-tokens.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** What a replay needs of a runtime. Without `tokens` nobody knows those that the run was given. */
export type ReplayContext = Pick<RuntimeContext, "clock" | "drain" | "bodies" | "store"> & {
  readonly tokens: ExternalTokens | undefined;
};

/** How a replay that changes nothing went. */
export type ReplayOutcome =
  /** The code did all that the log says, and would go on from there. */
  | { readonly kind: "matches" }
  /** The same, and the code ended. */
  | { readonly kind: "ends"; readonly result: ExecutionResult | "continued" }
  | { readonly kind: "differs"; readonly error: HoldfastError };

/**
 * Runs the code of a workflow against a log, to the end of the log, without
 * running a step or writing anything.
 */
export function replayLog(
  context: ReplayContext,
  definition: Definition,
  locked: LoadedExecution,
  codeVersion: string | null = null,
  /** Told where the code has come to, when it waits at the end of the log. */
  atRest: (run: RunState) => void = nothing,
): Promise<ReplayOutcome> {
  const { clock, drain, bodies, store, tokens } = context;
  return new Promise((resolve) => {
    const end = (outcome: ReplayOutcome): void => {
      resolve(outcome);
      run.drop(new Error("The replay is over."));
    };
    const never = new Promise<undefined>(() => undefined);
    const host: RunHost = {
      clock,
      drain,
      bodies,
      values: store.values,
      random: store.random,
      codeVersion,
      tokenOf(external) {
        if (tokens !== undefined) return tokens.tokenOf(external);
        // What its code does with another token than it had is not compared.
        run.state.replay.forgetInputs();
        return `${external}~`;
      },
      hotUntil: () => 0,
      newExecution: (draft) => newExecution(store, draft, clock.now()),
      onlyReplays(waiting) {
        atRest(waiting);
        end({ kind: "matches" });
      },
      append(_, { events }) {
        const last = events.at(-1);
        if (last?.kind === "finished")
          end({ kind: "ends", result: store.values.readResult(last.result) });
        else if (last?.kind === "locked") end({ kind: "ends", result: "continued" });
        else if (last?.kind === "parked" && run.state.poison !== undefined)
          end({ kind: "differs", error: run.state.poison });
        else end({ kind: "matches" });
        return never;
      },
      transact: () => never,
      release: () => Promise.resolve(),
      renew: () => Promise.resolve(),
      lockedAgain: () => ({ kind: "locked" }) as never,
      cancel: nothing,
      log: nothing,
      setProgress: nothing,
      rests: nothing,
      wakes: nothing,
      interrupted: nothing,
      lost: nothing,
      fetch: nothing,
      ended: nothing,
      parked: nothing,
      warn: nothing,
    };
    const run = new HotRun(host, definition, locked);
    run.start();
  });
}

const nothing = (): void => undefined;
