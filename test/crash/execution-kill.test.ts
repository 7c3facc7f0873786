import { describe, expect, test } from "vitest";
import { faultsIn, missingChildren } from "../conformance/execution/faults.ts";
import { readTables } from "../conformance/execution/tables.ts";
import type { Tables } from "../conformance/execution/tables.ts";
import { isDeep, seed, seededRandom } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import type { Folder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

/** The rows as the worker reports what was acknowledged. */
function factsIn({ executions, events, responses }: Tables): Set<string> {
  const ids = new Map(executions.map(({ key, id }) => [key, id]));
  return new Set([
    ...events.map(
      ({ execution, version, kind }) => `event ${ids.get(execution)} ${version} ${kind}`,
    ),
    ...responses.map(({ execution, source }) => `response ${ids.get(execution)} ${source}`),
  ]);
}

/** One worker that is killed at some moment; answers with what it had reported. */
async function killedWorker(
  folder: Folder,
  name: string,
  moment: number,
): Promise<readonly string[]> {
  const child = new Child("execution-writer.ts", [folder.file(), name, 12]);
  await child.reported(moment);
  child.kill();
  expect(await child.ended).toBe("SIGKILL");
  expect(child.errors).toBe("");
  return child.lines.filter((line) => line !== "open");
}

describe("killed with SIGKILL amid mixed operations on executions", () => {
  // Files are replaced now and then, for reading all of one takes longer with every round.
  const files = isDeep ? 8 : 1;
  const rounds = isDeep ? 5 : 3;

  test(`nothing acknowledged is lost, no operation is half there, and every state is the fold of its log, over ${files * rounds} rounds`, async () => {
    const random = seededRandom(seed);
    for (let file = 0; file < files; file += 1)
      await withFolder(async (folder) => {
        const promised: string[] = [];
        for (let round = 0; round < rounds; round += 1) {
          const moment = 2 + Math.floor(random() * 1_200);
          promised.push(...(await killedWorker(folder, `r${round}`, moment)));
          const database = await folder.open();
          const tables = await readTables(database);
          await database.close();
          const facts = factsIn(tables);
          expect(promised.filter((fact) => !facts.has(fact))).toEqual([]);
          expect(faultsIn(tables)).toEqual([]);
          expect(missingChildren(tables)).toEqual([]);
        }
        expect(promised.length).toBeGreaterThan(rounds);
      });
  });
});
