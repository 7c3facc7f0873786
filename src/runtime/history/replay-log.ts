import type { HoldfastError } from "../../model/errors.ts";
import type { ExecutionResult } from "../../model/execution/result.ts";
import { newExecution, newRequestedChild } from "../../stores/execution/log/create.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import type { Definition } from "../definition/definitions.ts";
import { HotRun } from "../run/hot-run.ts";
import type { RunHost } from "../run/run-host.ts";
import type { RunState } from "../run/run-state.ts";
import type { ExternalTokens } from "../client/external-tokens.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** The parts of a runtime that a replay needs. Without `tokens` the recorded tokens of the run are unknown. */
export type ReplayContext = Pick<RuntimeContext, "clock" | "drain" | "bodies" | "store"> & {
  readonly tokens: ExternalTokens | undefined;
};

/** The outcome of a replay that changes nothing. */
export type ReplayOutcome =
  /** The code did all that the log says, and would continue. */
  | { readonly kind: "matches" }
  /** The code did all that the log says, and ended. */
  | { readonly kind: "ends"; readonly result: ExecutionResult | "continued" }
  | { readonly kind: "differs"; readonly error: HoldfastError };

/** Replays a log against the code of a workflow, to the end of the log, without running a step or writing anything. */
export function replayLog(
  context: ReplayContext,
  definition: Definition,
  locked: LoadedExecution,
  codeVersion: string | null = null,
  /** Called with the run when its code waits at the end of the log. */
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
        // The token differs from the recorded one, so inputs that may depend on it are not compared.
        run.state.replay.forgetInputs();
        return `${external}~`;
      },
      hotUntil: () => 0,
      newExecution: (draft) => newExecution(store, draft, clock.now()),
      newChild: (draft) => newRequestedChild(store, draft, clock.now()),
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
      outputOf() {
        throw new Error("A replay runs no step.");
      },
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
