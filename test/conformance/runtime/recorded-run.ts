import { delayId } from "../../../src/model/ids/delay-id.ts";
import { parseExecutionId } from "../../../src/model/ids/execution-id.ts";
import { oneOffJoinSet } from "../../../src/model/ids/join-set-id.ts";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { byAnn } from "../execution/fixture.ts";

/** A run that another worker began, with the log that it left behind. */
export async function recordedRun(
  { executions }: Holdfast,
  id: string,
  name: string,
  events: readonly GivenEvent[],
  input?: unknown,
): Promise<void> {
  const { locked } = await executions.createLocked(
    { id, function: name, input },
    { ...byAnn, lease: "1 hour", codeVersion: "v1" },
  );
  const fence = byAnn.holder;
  let version = locked?.nextVersion ?? 0;
  if (events.length > 0)
    ({ nextVersion: version } = await executions.append(id, version, events, {
      fence,
    }));
  await executions.unlock(id, version, {
    holder: fence,
    reason: "for the test",
  });
}

/** What `ctx.step` records as its call of a number. */
export function stepDone(call: number, name: string, value: unknown, seen = 0): GivenEvent {
  return {
    kind: "stepFinished",
    name,
    outcome: "completed",
    value,
    call,
    seen,
  };
}

/** What `ctx.sleep` records as its call of a number. */
export function sleepAsked(id: string, call: number, ms: number): GivenEvent {
  const joinSet = oneOffJoinSet(call, 0);
  return {
    kind: "delayRequested",
    joinSet,
    delay: delayId(parseExecutionId(id), joinSet, 1),
    expiresAt: 1,
    startAt: { in: ms },
    call,
  };
}
