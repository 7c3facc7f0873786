import { expect, test } from "vitest";
import { closedDoors, forwardingFiles, mutualImports, writingAnswers } from "./house.ts";
import { treeOf } from "./tree.ts";

test("one aggregate reaches into another through its page, rows, parts and topics alone", () => {
  const tree = treeOf({
    "src/stores/queue/queue.ts": "export interface Queue {}",
    "src/stores/session/delete.ts": [
      'import { a } from "../queue/batch-row.ts";',
      'import { b } from "../queue/topics.ts";',
      'import { c } from "../queue/parts.ts";',
      'import { d } from "../queue/queue.ts";',
      'import { e } from "../queue/forget.ts";',
      'import { f } from "../list.ts";',
      'import { g } from "./session-row.ts";',
    ].join("\n"),
  });
  expect(closedDoors(tree)).toEqual([
    "src/stores/session/delete.ts imports src/stores/queue/forget.ts: reach into another aggregate through its page, its row file or its parts.ts.",
  ]);
});

test("two folders of stores or of the runtime that import each other are reported, but for the end of an execution", () => {
  const tree = treeOf({
    "src/stores/queue/a.ts": 'import { x } from "../session/session-row.ts";',
    "src/stores/session/b.ts": 'import { y } from "../queue/batch-row.ts";',
    "src/stores/execution/log/end.ts": 'import { z } from "../../process/parts.ts";',
    "src/stores/process/spawn.ts": 'import { z } from "../execution/parts.ts";',
    "src/stores/blob/keep.ts": 'import { z } from "../queue/batch-row.ts";',
    "src/runtime/run/hot-run.ts": 'import { z } from "../worker/run-log.ts";',
    "src/runtime/worker/worker.ts": 'import { z } from "../run/hot-run.ts";',
  });
  expect(mutualImports(tree)).toEqual([
    "src/stores/queue and src/stores/session import each other (src/stores/queue/a.ts, src/stores/session/b.ts): move what both need to one of them, or below both.",
    "src/runtime/run and src/runtime/worker import each other (src/runtime/run/hot-run.ts, src/runtime/worker/worker.ts): move what both need to one of them, or below both.",
  ]);
});

test("a predicate or a participle that writes is reported", () => {
  const tree = treeOf({
    "src/stores/a.ts": "function* isConsumed(): Tx<boolean> { yield* run(sql`DELETE FROM a`); }",
    "src/stores/b.ts":
      "function* recordedEffect(): Tx<void> { yield* run(sql`INSERT INTO b VALUES (1)`); }",
    "src/stores/c.ts": "function* consume(): Tx<void> { yield* run(sql`UPDATE c SET x = 1`); }",
    "src/stores/d.ts":
      "function* hasRows(): Tx<boolean> { return (yield* row(sql`SELECT 1`)) !== undefined; }",
    "src/stores/e.ts":
      "function* seedRows(): Tx<void> { yield* run(sql`INSERT INTO e VALUES (1)`); }",
  });
  expect(writingAnswers(tree)).toEqual([
    "src/stores/a.ts:1: isConsumed is named like a predicate and writes: name it by a verb.",
    "src/stores/b.ts:1: recordedEffect is named like a value and writes: name it by a verb.",
  ]);
});

test("a short file that only forwards is reported", () => {
  const tree = treeOf({
    "src/stores/queue/purge.ts":
      'import { b } from "./b.ts";\nexport function a(x: X): Y { return b(x, 1); }',
    "src/stores/queue/topics.ts": 'export const queueWork = "queue.work";',
    "src/stores/queue/two.ts":
      "export function a(): Y { return b(1); }\nexport function c(): Y { return d(2); }",
  });
  expect(forwardingFiles(tree)).toEqual([
    "src/stores/queue/purge.ts only forwards: call what is behind it, and delete the file.",
  ]);
});
