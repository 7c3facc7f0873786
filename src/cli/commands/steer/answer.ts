import type { Command } from "commander";
import { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionResult } from "../../../model/execution/result.ts";
import { externalTokens } from "../../../runtime/client/external-tokens.ts";
import type { Cli } from "../../cli.ts";
import { givenJson } from "../../text/json.ts";
import { valueText } from "../../text/value-text.ts";

/** `holdfast answer <id> [value]`: answers a question of a run. */
export function addAnswer(program: Command, cli: Cli): void {
  program
    .command("answer")
    .description("answers a question of a run; the first answer stays")
    .argument("<id>", "the id of the question, or its token")
    .argument("[value]", "the answer as JSON (default: null); - reads it from standard input")
    .option("--fail <message>", "fail the question instead, with this error message")
    .action(
      cli.action(async (context, options: { fail?: string }, given: string, text?: string) => {
        const { fail } = options;
        if (text !== undefined && fail !== undefined)
          throw new HoldfastError(
            "OPTION_INVALID",
            "A value answers and --fail fails. Pass only one of them.",
            { option: "fail" },
          );
        const value = text === undefined ? null : await givenJson("the answer", text, context.host);
        const { database, executions } = await context.openForWriting();
        const { options: opened } = await context.target();
        // A caller that can open the database needs no token.
        const id = given.includes("~")
          ? (await externalTokens(database, opened)).externalOf(given)
          : given;
        const wait = { signal: context.stop };
        if (fail !== undefined) {
          const error = { name: "Error", message: fail };
          const kind = await executions.resolve(id, { kind: "failed", error }, wait);
          return context.answer({ id, kind }, () =>
            kind === "accepted" ? `Failed ${id}.` : `${id} had already failed like this.`,
          );
        }
        const reply = await executions.answer(id, value, wait);
        if (reply.kind === "tooLate") throw tooLate(id, reply.result);
        context.answer({ id, ...reply }, () =>
          reply.kind === "accepted" ? `Answered ${id}.` : `${id} already had the same answer.`,
        );
      }),
    );
}

function tooLate(id: string, result: ExecutionResult): HoldfastError {
  return new HoldfastError(
    "RESOLUTION_CONFLICT",
    result.kind === "completed"
      ? `${id} was answered before with ${valueText(result.value)}, which stays.`
      : `${id} can no longer be answered: it ${spokenEnd[result.kind]}.`,
    { id, result },
  );
}

const spokenEnd = {
  failed: "has failed",
  cancelled: "ended with its run",
  timedOut: "has timed out",
} as const;
