import type { SpawnDraft } from "../../../src/processes.ts";

/** A build that runs as an execution, wakes a session, and can be addressed by it. */
export const build: SpawnDraft = {
  id: "build",
  kind: "workflow",
  wakeTarget: "s",
  causedBy: "turn-1",
  execution: { function: "ci/build", input: { branch: "main" } },
  grants: [{ scope: "s", descriptor: { label: "the build" } }],
};
