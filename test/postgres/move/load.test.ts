import { existsSync, readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { workflow } from "../../../src/index.ts";
import { holdfastOn } from "../../../src/open/open-holdfast.ts";
import { Child } from "../../crash/child.ts";
import { isDeep } from "../../depth.ts";
import { move, rejection, withBoth } from "./moving.ts";

/** What the workers run; here it only names them. */
const tenSteps = workflow("ten-steps", (_, start: number) => Promise.resolve(start));

const startsBefore = isDeep ? 1_000 : 20;

/**
 * Two processes run workflows on a file, and a third starts them, while it is
 * moved. What was acknowledged is the ledger: runs that were started, and
 * steps whose outcome the code was given.
 */
test("a move under load loses nothing that was acknowledged, and leaves nobody spinning", () =>
  withBoth(async (folder, place) => {
    const effects = folder.file("source-effects");
    const holdfast = await holdfastOn(await folder.open());
    const workers = [1, 2].map(() => new Child("runtime-worker.ts", [folder.file(), effects, 2]));
    for (const worker of workers) onTestFinished(() => worker.kill());
    for (const worker of workers) await worker.reported(1);

    const started: string[] = [];
    let moving: Promise<unknown> | undefined;
    const refused = await rejection(
      (async () => {
        for (let start = 0; ; start += 1) {
          const run = await holdfast.start(tenSteps, start, {
            id: `r${start}`,
          });
          started.push(run.id);
          // Without a step that was recorded there is nothing to repeat.
          if (started.length >= startsBefore && recordedIn(effects).length > 0)
            moving ??= move(folder, place);
        }
      })(),
    );
    expect(refused).toMatchObject({ code: "MOVED_TO_POSTGRES" });
    await moving;
    for (const worker of workers) {
      expect(await worker.ended).toBe(0);
      expect(worker.errors).toContain("This worker stops. This SQLite database");
    }
    await holdfast.close();

    const after = folder.file("target-effects");
    const told = `${place.url}#${place.schema}`;
    const worker = new Child("runtime-worker.ts", [told, after, 0]);
    onTestFinished(() => worker.kill());
    const target = await holdfastOn(await place.open());
    const results = await Promise.all(started.map((id) => target.get(tenSteps, id).result()));
    expect(results).toEqual(started.map((_, start) => start + 45));
    const done = new Set(recordedIn(effects).map(stepOf));
    const repeated = linesOf(after).filter((line) => done.has(stepOf(line)));
    expect(repeated.filter((line) => !isRecorded(line))).toEqual([]);
    expect(done.size).toBeGreaterThan(0);
  }));

function linesOf(file: string): readonly string[] {
  return readFileSync(file, "utf8").split("\n").filter(Boolean);
}

function recordedIn(file: string): readonly string[] {
  return existsSync(file) ? linesOf(file).filter(isRecorded) : [];
}

function isRecorded(line: string): boolean {
  return line.endsWith(" recorded");
}

function stepOf(line: string): string {
  return line.split(" ").slice(0, 2).join(" ");
}
