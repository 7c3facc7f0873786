import type { Duration } from "../../../model/durations.ts";
import type { Created, ExecutionRole } from "../../../model/execution-event.ts";
import { parseExecutionId } from "../../../model/execution-id.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { parseFunctionName } from "../../../model/function-name.ts";
import { instantAfter, resolveStartAt } from "../../../model/schedule.ts";
import type { StartAt } from "../../../model/schedule.ts";
import { checkedText } from "../../../model/shape.ts";
import { checkedMetadata, checkedRole, checkedTags } from "../checks.ts";
import type { NewExecution } from "./create.ts";
import type { Surroundings } from "../context.ts";

/** What is to be run, and when. */
export interface CreateOptions {
  /** Chosen by the caller, so that creating twice is creating once; else a new `E_…`. */
  readonly id?: string;
  readonly function: string;
  readonly input?: unknown;
  /** `workflow` unless told. */
  readonly role?: ExecutionRole;
  readonly startAt?: StartAt;
  /** It ends as timed out when it is not done by then. */
  readonly deadline?: Duration;
  readonly concurrencyKey?: string;
  readonly codeVersion?: string;
  readonly tags?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly isPaused?: boolean;
  readonly scheduledBy?: ExecutionId;
}

/** An execution as it is stored, from what a caller said of it. */
export function newExecution(
  { ids, codec }: Surroundings,
  options: CreateOptions,
  at: number,
): NewExecution {
  const { startAt = "now", deadline, concurrencyKey, codeVersion } = options;
  const scheduledAt = resolveStartAt(startAt, at);
  const created: Created = {
    kind: "created",
    role: checkedRole(options.role ?? "workflow"),
    function: parseFunctionName(options.function),
    ...codec.input(options.input),
    scheduledAt,
    deadlineAt:
      deadline === undefined ? null : instantAfter(at, deadline, "a deadline"),
    concurrencyKey:
      concurrencyKey === undefined
        ? null
        : checkedText("A concurrency key", concurrencyKey),
    codeVersion:
      codeVersion === undefined
        ? null
        : checkedText("A code version", codeVersion),
    isPaused: options.isPaused ?? false,
    scheduledBy:
      options.scheduledBy === undefined
        ? null
        : parseExecutionId(options.scheduledBy),
    forkedFrom: null,
    metadata: checkedMetadata(options.metadata ?? {}),
  };
  return {
    id:
      options.id === undefined ? ids.nextId("E") : parseExecutionId(options.id),
    at,
    created,
    ...(options.tags && { tags: checkedTags(options.tags) }),
  };
}
