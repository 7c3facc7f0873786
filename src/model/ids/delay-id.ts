import type { Branded } from "./brand.ts";
import { executionIdFault, type ExecutionId } from "./execution-id.ts";
import type { JoinSetId } from "./join-set-id.ts";
import { memberFault, memberText, splitMember, type JoinSetMember } from "./join-set-member.ts";
import { malformedId, type IdFault } from "./malformed-id.ts";

/**
 * A delay that an execution waits for: `Delay_`, the whole id of that execution, and the delay's
 * place in it, such as `Delay_order-42.o:7_1`.
 *
 * The execution's id is kept whole, including its `E_`. Replacing `E` by `Delay` would be shorter.
 * But a caller may use ULIDs as keys, and then `Delay_<ulid>` would belong to two executions.
 */
export type DelayId = Branded<"DelayId">;

const prefix = "Delay_";

/**
 * Returns the id of the `index`-th delay in `joinSet`. Delays count from 1, separately from the
 * set's children. An execution at the length limit can still sleep, because a delay id may be
 * longer than an execution id by one place.
 */
export function delayId(execution: ExecutionId, joinSet: JoinSetId, index: number): DelayId {
  return `${prefix}${execution}.${memberText(joinSet, index)}` as DelayId;
}

/** @throws HoldfastError `ID_MALFORMED`; `details.reason` names the fault. */
export function parseDelayId(text: string): DelayId {
  const fault = delayIdFault(text);
  if (fault === undefined) return text as DelayId;
  throw malformedId('a delay id such as "Delay_order-42.o:7_1"', text, fault);
}

function delayIdFault(text: string): IdFault | undefined {
  if (typeof text !== "string" || !text.startsWith(prefix)) return "prefix";
  const dot = text.lastIndexOf(".");
  if (dot < 0) return "segment";
  return memberFault(text.slice(dot + 1)) ?? executionIdFault(text.slice(prefix.length, dot));
}

/** Returns the waiting execution, and the delay's place in it. */
export function splitDelayId(id: DelayId): { readonly execution: ExecutionId } & JoinSetMember {
  const dot = id.lastIndexOf(".");
  return {
    execution: id.slice(prefix.length, dot) as ExecutionId,
    ...splitMember(id.slice(dot + 1)),
  };
}
