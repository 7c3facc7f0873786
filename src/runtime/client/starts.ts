import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { parseOwnExecutionId, type ExecutionId } from "../../model/ids/execution-id.ts";
import type { IdSource } from "../../model/ids/id-source.ts";
import { draftOf, givenList, optionsOf } from "../../model/shape.ts";
import { newExecution, type ExecutionDraft } from "../../stores/execution/log/create.ts";
import type { Definition } from "../definition/definitions.ts";
import { validated } from "../definition/schema.ts";
import type { StartOf, StartOptions } from "../definition/workflow-context.ts";
import type { RuntimeContext } from "../runtime-context.ts";

const startNames = [
  "id",
  "startAt",
  "deadline",
  "tags",
  "concurrencyKey",
  "metadata",
] as const satisfies readonly (keyof StartOptions)[];

/** Makes one checked draft from a caller's arguments; asynchronous only if a schema is. */
export function startOf(
  { name, kind, schema }: Definition,
  input: unknown,
  options: StartOptions | undefined,
): ExecutionDraft | Promise<ExecutionDraft> {
  const given = optionsOf<StartOptions>(options, startNames);
  if (given.id !== undefined) parseOwnExecutionId(given.id);
  const draft = { ...given, function: name, role: kind };
  // A promise is not a value: awaited here, it would become a value that `ctx.call` refuses.
  return schema === undefined
    ? { ...draft, input }
    : validated(`The input of ${name}`, schema, input, (valid) => ({
        ...draft,
        input: valid,
      }));
}

/** The number of drafts encoded before other work gets its turn: about a millisecond. */
const checksPerTurn = 100;

/**
 * Makes checked drafts for many starts. All drafts are checked first, so that one invalid start
 * leaves no others behind. The runs get a copy of the checked input, which the caller cannot
 * change.
 * @throws HoldfastError as `start` does, with the place in the list: `details.index`
 */
export async function startsOf(
  context: RuntimeContext,
  definition: Definition,
  given: readonly StartOf<unknown>[],
): Promise<readonly ExecutionDraft[]> {
  const starts = givenList("starts", given);
  const drafts: ExecutionDraft[] = [];
  for (let from = 0; from < starts.length; from += checksPerTurn) {
    if (from > 0) await context.database.pause();
    const turn = starts.slice(from, from + checksPerTurn).map((each, index) =>
      checkedStart(context, definition, each).catch((error: unknown) => {
        throw placed(from + index, error);
      }),
    );
    // The first error in the list is reported, whichever check fails first.
    for (const checked of await Promise.allSettled(turn)) {
      if (checked.status === "rejected") throw checked.reason;
      drafts.push(checked.value);
    }
  }
  return drafts;
}

async function checkedStart(
  { store: { values, clock } }: RuntimeContext,
  definition: Definition,
  given: StartOf<unknown>,
): Promise<ExecutionDraft> {
  const { input, ...options } = draftOf<StartOf<unknown>>("it", given, ["input", ...startNames]);
  const made = startOf(definition, input, options);
  const draft = made instanceof Promise ? await made : made;
  const { created } = newExecution({ ids: noIds, values }, draft, clock.now());
  const { tags, metadata, scheduledAt } = created;
  return {
    ...draft,
    ...(draft.startAt !== undefined && { startAt: { at: scheduledAt } }),
    tags,
    metadata,
    input: values.readValue(created.input),
  };
}

/** Gives no ids: a draft that is only checked must not use up an id. */
const noIds: IdSource = {
  nextId: () => "E_00000000000000000000000000" as ExecutionId as never,
};

function placed(index: number, error: unknown): unknown {
  if (!isHoldfastError(error)) return error;
  const { code, message, details, cause } = error;
  return new HoldfastError(
    code,
    `starts[${index}]: ${message}`,
    { ...details, index },
    cause === undefined ? undefined : { cause },
  );
}
