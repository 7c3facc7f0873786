import { isEndedFromOutside } from "../../../model/execution/pending.ts";
import type { RunState } from "../../run/run-state.ts";
import type { RuntimeContext } from "../../runtime-context.ts";
import { cancellationOf } from "./history.ts";

/** An outside change to a run that a worker has in memory. */
export type Interruption =
  | { readonly kind: "nothing" | "paused" }
  /** The run has ended, is being ended by force, or was set aside: no code of it runs any more. */
  | { readonly kind: "taken" }
  | {
      readonly kind: "cancelled";
      readonly cancellation: NonNullable<RunState["cancellation"]>;
    };

export async function interruptionOf(
  context: RuntimeContext,
  { id, cancellation: known }: RunState,
): Promise<Interruption> {
  const { executions } = context.pages;
  const { lifecycle, pending } = (await executions.get(id)).state;
  if (pending.kind === "finished" || isEndedFromOutside(pending)) return { kind: "taken" };
  if (lifecycle === "parked") return { kind: "taken" };
  if (lifecycle === "paused") return { kind: "paused" };
  if (lifecycle !== "cancelling" || known !== null) return { kind: "nothing" };
  const cancellation = await cancellationOf(context, id);
  return cancellation === null ? { kind: "nothing" } : { kind: "cancelled", cancellation };
}
