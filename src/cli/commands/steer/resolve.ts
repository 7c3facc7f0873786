import type { Command } from "commander";
import { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionResult } from "../../../model/execution/result.ts";
import { externalTokens } from "../../../runtime/client/external-tokens.ts";
import type { Cli } from "../../cli.ts";
import { givenValue } from "./given-value.ts";

interface ResolveOptions {
  readonly value?: string;
  readonly fail?: string;
}

/** `holdfast resolve <token>`: answers what a run waits for from outside. */
export function addResolve(program: Command, cli: Cli): void {
  program
    .command("resolve")
    .description("answers what a run waits for with ctx.external; the first answer stays")
    .argument("<token>", "that ctx.external gave, or the id that show tells")
    .option("--value <json>", "the answer (default: null); - reads it from standard input")
    .option("--fail <message>", "fail it instead, with an error of this message")
    .action(
      cli.action(async (context, options: ResolveOptions, token: string) => {
        if (options.value !== undefined && options.fail !== undefined)
          throw new HoldfastError(
            "OPTION_INVALID",
            "--value answers and --fail fails: give one of them.",
            { option: "fail" },
          );
        const value = await givenValue(context, options.value, null);
        const { fail } = options;
        const result: ExecutionResult =
          fail === undefined
            ? { kind: "completed", value }
            : { kind: "failed", error: { name: "Error", message: fail } };
        const { database, executions } = await context.openForWriting();
        // Whoever may open the database needs no token.
        const id = token.includes("~") ? (await externalTokens(database)).externalOf(token) : token;
        const outcome = await executions.resolve(id, result, {
          signal: context.stop,
        });
        context.answer({ id, outcome }, () =>
          outcome === "resolved" ? `Answered ${id}.` : `${id} was answered the same before.`,
        );
      }),
    );
}
