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
    description: "pauses a run: it starts nothing new, and running work is recorded first",
    done: "was paused.",
    before: "was already paused.",
  },
  {
    command: "resume",
    method: "unpause",
    description: "resumes a paused run",
    done: "was resumed.",
    before: "was not paused.",
  },
  {
    command: "unpark",
    method: "unpark",
    description: "lets workers resume a parked run with their current code",
    done: "was unparked. The next worker that serves its function resumes it.",
    before: "was not parked.",
  },
];

/** `holdfast pause`, `resume` and `unpark`: each takes a run and says whether anything changed. */
export function addLifecycle(program: Command, cli: Cli): void {
  for (const { command, method, description, done, before } of changes)
    program
      .command(command)
      .description(description)
      .argument("<id>", "the id of the run")
      .action(
        cli.action(async (context, _, id: string) => {
          const { executions } = await context.openForWriting();
          const change: Executions["pause"] = executions[method];
          const { isChanged } = await change(id, { signal: context.stop });
          context.answer({ id, isChanged }, () => `${id} ${isChanged ? done : before}`);
        }),
      );
}
