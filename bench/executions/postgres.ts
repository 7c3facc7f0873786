import { executionCodec } from "../../src/model/execution/codec.ts";
import { valueCodec } from "../../src/model/values/value-codec.ts";
import type { Database } from "../../src/sql/database.ts";
import { operation } from "../../src/sql/operation.ts";
import { appendEvents } from "../../test/fixtures/execution-operations.ts";
import { executions } from "../../src/stores/execution/executions.ts";
import { holder, idOf } from "../../test/fixtures/execution-parts.ts";
import { compared } from "../scratch.ts";
import { appendSteps, lockedTargets, stepEvent, throughStore } from "./load.ts";
import type { AppendStep } from "./load.ts";
import { onServer } from "./on-server.ts";
import { size } from "../sizes.ts";

const callers = size(200, 4);
const eachInSets = size(100, 4);
const eachAlone = size(10, 2);
const rounds = size(3, 1);

/** The same operation without its set form: one transaction each. */
const appendAlone = operation("appendAlone", {
  isolation: "readCommitted",
  key: appendEvents.key,
  one: appendEvents.one,
});

/** Appends in sets against one transaction per append, on the same pool of one server. */
export function postgres(): Promise<object> {
  return onServer(async (database) => {
    const log = executions(database);
    const targets = (await lockedTargets(log, callers)).map((one) => [one]);
    const values: number[] = [];
    const ceilings: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      values.push(await appendSteps(throughStore(log), targets, eachInSets));
      ceilings.push(await appendSteps(alone(database), targets, eachAlone));
    }
    return {
      ...compared(values, ceilings),
      batchSize: database.stats().batchSize,
      note: "ceiling is one transaction per append; aim ≥ 6",
    };
  });
}

function alone(database: Database): AppendStep {
  const codec = executionCodec(valueCodec({ sha256Hex: database.sha256Hex }));
  return ({ id, key, nextVersion }) =>
    database.write(appendAlone, {
      id: idOf(id),
      key,
      version: nextVersion,
      at: Date.now(),
      events: [codec.event(stepEvent)],
      fence: holder,
    });
}
