import type { Command } from "commander";
import { HoldfastError } from "../../../model/errors.ts";
import type { Cli } from "../../cli.ts";
import { runDemo } from "../../demo/demo.ts";
import { runDemoWorker } from "../../demo/worker.ts";
import { exitCodes } from "../../exit-codes.ts";
import { screenOn } from "../../live/screen.ts";
import { durationOption, wholeNumberOption } from "../../options/option-values.ts";

interface DemoCommandOptions {
  readonly orders: number;
  readonly pace: number;
}

const ordersMax = 100;
const paceMsMax = 60_000;

/** `holdfast demo`: shows the promise of the package. */
export function addDemo(program: Command, cli: Cli): void {
  program
    .command("demo")
    .description(
      "runs orders on two worker processes, kills one of them, and counts which steps ran twice; needs no project",
    )
    .option("--orders <count>", `the number of orders, 2 to ${ordersMax}`, wholeNumberOption, 10)
    .option("--pace <time>", "the length of a step, such as 600ms; at most 1m", durationOption, 600)
    .action(
      cli.action(async (context, { orders, pace }: DemoCommandOptions) => {
        checkBetween("orders", orders, 2, ordersMax);
        checkBetween("pace", pace, 1, paceMsMax);
        const { host, isJson } = context;
        const screen = screenOn(host.stdout, host.env, { isJson });
        const outcome = await runDemo(screen, host, { orders, paceMs: pace });
        return outcome === "broken" ? exitCodes.failed : exitCodes.ok;
      }),
    );
  program.command("demo-worker <database> <file> <pace>", { hidden: true }).action(
    cli.action(async (_, __: object, ...args: [string, string, string]) => {
      const [database, file, pace] = args;
      await runDemoWorker(database, file, Number(pace));
    }),
  );
}

/** @throws HoldfastError `OPTION_INVALID` */
function checkBetween(option: string, value: number, min: number, max: number): void {
  if (value >= min && value <= max) return;
  throw new HoldfastError(
    "OPTION_INVALID",
    `--${option} must be from ${min} to ${max}; got ${value}.`,
    {
      option,
    },
  );
}
