import type { Command } from "commander";
import type { Executions } from "../../../stores/execution/executions.ts";
import type { Cli } from "../../cli.ts";

interface Change {
  readonly command: string;
  readonly method: "pause" | "unpause" | "unpark";
  readonly description: string;
  readonly done: string;
  readonly before: string;
}

const changes: readonly Change[] = [
  {
    command: "pause",
    method: "pause",
    description: "keeps a run from going on: nothing new is begun, what runs is recorded first",
    done: "is paused.",
    before: "was paused before.",
  },
  {
    command: "resume",
    method: "unpause",
    description: "lets a paused run go on",
    done: "goes on.",
    before: "was not paused.",
  },
  {
    command: "unpark",
    method: "unpark",
    description: "lets a parked run be tried again, with whatever code the workers have now",
    done: "is tried again by the next worker that has its function.",
    before: "was not parked.",
  },
];

/** `holdfast pause`, `resume` and `unpark`: each takes a run and says whether anything changed. */
export function addLifecycle(program: Command, cli: Cli): void {
  for (const { command, method, description, done, before } of changes)
    program
      .command(command)
      .description(description)
      .argument("<id>", "of the run")
      .action(
        cli.action(async (context, _, id: string) => {
          const { executions } = await context.openForWriting();
          const change: Executions["pause"] = executions[method];
          const { isChanged } = await change(id, { signal: context.stop });
          context.answer({ id, isChanged }, () => `${id} ${isChanged ? done : before}`);
        }),
      );
}
