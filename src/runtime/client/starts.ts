import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { IdSource } from "../../model/ids/id-source.ts";
import { draftOf, givenList, optionsOf } from "../../model/shape.ts";
import {
  newExecution,
  type ExecutionDraft,
} from "../../stores/execution/log/create.ts";
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
] as const satisfies readonly (keyof StartOptions)[];

/** One run to start, from what a caller said of it. */
export async function startOf(
  { name, kind, schema }: Definition,
  input: unknown,
  options: StartOptions | undefined,
): Promise<ExecutionDraft> {
  return {
    ...optionsOf<StartOptions>(options, startNames),
    function: name,
    role: kind,
    // A promise is no value: awaited here, it would be one that `ctx.call` refuses.
    input:
      schema === undefined
        ? input
        : await validated(`The input of ${name}`, schema, input),
  };
}

/** So many are encoded before others have their turn: about a millisecond. */
const checksPerTurn = 100;

/**
 * The same for many. All of each is checked, so that a start which can never
 * be leaves none of those beside it: encoding twice is what that costs.
 * @throws HoldfastError as `start` does, with the place in the list: `details.index`
 */
export async function startsOf(
  { store, database }: RuntimeContext,
  definition: Definition,
  given: readonly StartOf<unknown>[],
): Promise<readonly ExecutionDraft[]> {
  const drafts = await Promise.all(
    givenList("starts", given).map((each, index) =>
      placed(index, () => {
        const { input, ...options } = draftOf<StartOf<unknown>>("it", each, [
          "input",
          ...startNames,
        ]);
        return startOf(definition, input, options);
      }),
    ),
  );
  const { values, clock } = store;
  for (const [index, draft] of drafts.entries()) {
    if (index > 0 && index % checksPerTurn === 0) await database.pause();
    await placed(index, async () =>
      newExecution({ ids: noIds, values }, draft, clock.now()),
    );
  }
  return drafts;
}

/** An id that is only looked at is not taken from those to come. */
const noIds: IdSource = {
  nextId: () => "E_00000000000000000000000000" as ExecutionId as never,
};

async function placed<T>(index: number, make: () => Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    const { code, message, details, cause } = error;
    throw new HoldfastError(
      code,
      `starts[${index}]: ${message}`,
      { ...details, index },
      cause === undefined ? undefined : { cause },
    );
  }
}
