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

/** `holdfast resolve <token>`: answers a run that waits for an answer from outside. */
export function addResolve(program: Command, cli: Cli): void {
  program
    .command("resolve")
    .description("answers a run that waits in ctx.external; the first answer stays")
    .argument("<token>", "the token from ctx.external, or the id printed by show")
    .option("--value <json>", "the answer (default: null); - reads it from standard input")
    .option("--fail <message>", "fail the wait instead, with this error message")
    .action(
      cli.action(async (context, options: ResolveOptions, token: string) => {
        if (options.value !== undefined && options.fail !== undefined)
          throw new HoldfastError(
            "OPTION_INVALID",
            "--value answers and --fail fails. Pass only one of them.",
            { option: "fail" },
          );
        const value = await givenValue(context, options.value, null);
        const { fail } = options;
        const result: ExecutionResult =
          fail === undefined
            ? { kind: "completed", value }
            : { kind: "failed", error: { name: "Error", message: fail } };
        const { database, executions } = await context.openForWriting();
        const { options: opened } = await context.target();
        // A caller that can open the database needs no token.
        const id = token.includes("~")
          ? (await externalTokens(database, opened)).externalOf(token)
          : token;
        const outcome = await executions.resolve(id, result, {
          signal: context.stop,
        });
        context.answer({ id, outcome }, () =>
          outcome === "resolved" ? `Answered ${id}.` : `${id} already had the same answer.`,
        );
      }),
    );
}
