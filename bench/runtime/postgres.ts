import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { appendSteps, lockedTargets, throughStore } from "../executions/load.ts";
import { atServer } from "../executions/on-server.ts";
import { cpuMeter, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";
import { shapes, stepping, stepsPerSecond } from "./load.ts";

const rounds = size(3, 1);

interface Figures {
  readonly stepsPerSec: number;
  readonly ceiling: number;
  readonly ratio: number;
  readonly cpuMicrosPerStep: number;
}

/** The shapes of `runtime.steps` on Postgres, against as many callers of the store's append on the same pool. */
export function postgres(): Promise<object> {
  return atServer(async (url, schema) => {
    const holdfast = await openHoldfast(url, { postgres: { schema } });
    await holdfast.work([stepping], { concurrency: 1_000 });
    await stepsPerSecond(holdfast, { workflows: 20, steps: 5 });
    const { executions } = holdfast;
    const figures: Record<string, Figures> = {};
    for (const shape of shapes) {
      const { workflows, steps } = shape;
      const name = `${workflows}x${steps}`;
      const targets = await lockedTargets(executions, workflows, name);
      const values: number[] = [];
      const ceilings: number[] = [];
      const cpuMicros: number[] = [];
      for (let round = 0; round < rounds; round += 1) {
        const cpu = cpuMeter();
        values.push(await stepsPerSecond(holdfast, shape));
        cpuMicros.push(cpu() / (workflows * steps));
        ceilings.push(
          await appendSteps(
            throughStore(executions),
            targets.map((target) => [target]),
            steps,
          ),
        );
      }
      figures[name] = {
        stepsPerSec: Math.round(median(values)),
        ceiling: Math.round(median(ceilings)),
        ratio: rounded(median(values.map((value, at) => value / (ceilings[at] ?? 1)))),
        cpuMicrosPerStep: rounded(median(cpuMicros)),
      };
    }
    await holdfast.close();
    const [first] = Object.values(figures);
    return {
      value: first?.stepsPerSec,
      unit: "steps/s of the first shape",
      ratio: first?.ratio,
      rounds,
      shapes: figures,
      note: "ceiling is as many callers of executions.append",
    };
  });
}
