import { HoldfastError } from "../../model/errors.ts";
import type { OpenWait } from "../../model/execution/open-waits.ts";
import { parseExecutionId, type ExecutionId } from "../../model/ids/execution-id.ts";
import { checkedCount, givenInvalid, optionsOf } from "../../model/shape.ts";
import { instantOfDate } from "../../model/time/instants.ts";
import type { Page, PageOptions } from "../../stores/list.ts";
import type { AnswerReply } from "../../stores/execution/control/resolve.ts";
import type { ListExecutionsOptions } from "../../stores/execution/read/list-filter.ts";
import type { ListQuestionsOptions, Question } from "../../stores/execution/read/questions.ts";
import type { ExecutionSummary } from "../../stores/execution/read/summary.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { untilEnd } from "./ending.ts";
import { openAsks } from "./open-asks.ts";

/** The filters of a list of waits. It reads the logs of runs, so it needs a function, a run or a tag. */
interface ListWaitsOptions extends PageOptions {
  readonly kind: "signal" | "sleep";
  /** Only runs of this function. */
  readonly function?: string;
  /** Only this run, and the runs below it. */
  readonly run?: string;
  /** Only runs with this tag. */
  readonly tag?: string;
  /** Exclusive; a Date, or milliseconds since 1970. */
  readonly askedBefore?: Date | number;
  /** The largest number of runs that are read, 1 to 100; defaults to 50. */
  readonly limit?: number;
}

/** A signal or the end of a sleep that a run waits for. */
export type RunWait = {
  readonly run: ExecutionId;
  readonly function: string;
  readonly askedAt: number;
} & (
  | { readonly kind: "signal"; readonly signal: string; readonly expiresAt: number | null }
  | { readonly kind: "sleep"; readonly expiresAt: number }
);

/** What runs ask people and other systems. */
export interface Questions {
  /**
   * The open questions of all runs, newest first, with what they are about and the schema of an
   * answer. With a `kind` it lists the signals or sleeps that runs wait for instead.
   * @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID`
   * @example
   * const { items } = await holdfast.questions.list({ tag: "refunds" });
   */
  list(options?: ListQuestionsOptions & { readonly kind?: "question" }): Promise<Page<Question>>;
  list(options: ListWaitsOptions): Promise<Page<RunWait>>;
  /**
   * Answers a question by its id. The first answer stays: the same one again is `replayed`, and
   * another is `tooLate`, as is one after the timeout. The reply then shows how the question ended.
   * An answer that does not fit the schema, or a value above the size limit, leaves the question
   * open.
   * @throws HoldfastError `ANSWER_INVALID`, `EXECUTION_NOT_FOUND`, `NOT_EXTERNAL`, `ID_MALFORMED`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example
   * const { kind } = await holdfast.questions.answer(id, { approve: true });
   */
  answer(id: string, value: unknown): Promise<AnswerReply>;
}

export function questionsOf(context: RuntimeContext): Questions {
  const list = (given?: ListOptions): Promise<Page<Question | RunWait>> =>
    untilEnd(context, () => listQuestions(context, given));
  return {
    list: list as Questions["list"],
    async answer(id, value) {
      const external = parseExecutionId(id);
      return answered(context, value, () => context.pages.executions.answer(external, value));
    },
  };
}

type ListOptions = ListQuestionsOptions & { readonly kind?: RunWait["kind"] | "question" };

/** The same list without a runtime, for a database that is only read. */
export async function listQuestions(
  context: Pick<RuntimeContext, "pages" | "clock">,
  given?: ListOptions,
): Promise<Page<Question | RunWait>> {
  const { kind = "question", ...filter } = optionsOf<ListOptions>(given, [
    "kind",
    "function",
    "run",
    "tag",
    "askedBefore",
    "after",
    "limit",
    "signal",
    "timeout",
  ]);
  switch (kind) {
    case "question":
      return context.pages.executions.questions(filter);
    case "signal":
    case "sleep":
      return waitsOf(context, { ...filter, kind });
    default:
      throw givenInvalid("kind", '"question", "signal" or "sleep"', kind);
  }
}

/** Answers an external. A value that is too large is refused, and the question stays open. */
export async function answered<R>(
  context: RuntimeContext,
  value: unknown,
  answer: () => Promise<R>,
): Promise<R> {
  // A refusal names the path from this value, not from the result around it.
  context.store.values.value(value);
  return untilEnd(context, answer);
}

const runsDefault = 50;
const runsMax = 100;

async function waitsOf(
  { pages, clock }: Pick<RuntimeContext, "pages" | "clock">,
  given: ListQuestionsOptions & { readonly kind: RunWait["kind"] },
): Promise<Page<RunWait>> {
  const { kind, run, askedBefore, limit = runsDefault, ...filter } = given;
  if (run === undefined && filter.function === undefined && filter.tag === undefined)
    throw new HoldfastError(
      "OPTION_INVALID",
      `A list of kind "${kind}" reads the logs of runs. Name them by function, run or tag.`,
      { option: "kind" },
    );
  const before =
    askedBefore === undefined
      ? Number.POSITIVE_INFINITY
      : checkedCount("askedBefore", instantOfDate("askedBefore", askedBefore));
  const options: ListExecutionsOptions = {
    ...filter,
    ...(run !== undefined && { idPrefix: run }),
    hideFinished: true,
    limit: checkedCount("limit", limit, { min: 1, max: runsMax }),
  };
  const page = await pages.executions.list(options);
  const waiting = page.items.filter(
    ({ id, role }) => role === "workflow" && (run === undefined || isWithin(id, run)),
  );
  const now = clock.now();
  const found = await Promise.all(
    waiting.map(async (summary) => {
      const open = await openAsks(pages.executions, summary, now);
      return open.flatMap((wait) => waitOf(summary, wait) ?? []);
    }),
  );
  const items = found.flat().filter((wait) => wait.kind === kind && wait.askedAt < before);
  return { ...page, items };
}

/** True for a run, and for all below it. */
function isWithin(id: string, run: string): boolean {
  return id === run || id.startsWith(`${run}.`);
}

function waitOf({ id, function: name }: ExecutionSummary, wait: OpenWait): RunWait | undefined {
  const base = { run: id, function: name, askedAt: wait.since };
  if (wait.kind === "signal")
    return { ...base, kind: "signal", signal: wait.signal, expiresAt: wait.until };
  return wait.kind === "sleep" ? { ...base, kind: "sleep", expiresAt: wait.until } : undefined;
}
