import type { LeaseFence } from "../../src/model/lease.ts";
import {
  attachments as attachmentsIn,
  leases,
  queue,
  sessions,
  type TurnDraft,
} from "../../src/sessions.ts";
import type { Database } from "../../src/kernel.ts";
import { holding, said } from "../conformance/session/fixture.ts";

/** What the process that commits is told. */
export interface TurnOrder {
  readonly fence: LeaseFence;
  readonly claims: TurnDraft["claims"];
  readonly attachments: readonly string[];
}

/** A turn that writes to every table a turn can write to. */
export function wholeTurn({ fence, claims, attachments }: TurnOrder): TurnDraft {
  return {
    turn: "t1",
    fence,
    release: true,
    expectedRevision: 1,
    nodes: [
      { kind: "message", role: "user", payload: { text: "hello" } },
      { kind: "message", role: "assistant", payload: { text: "hi" } },
      { id: "own", kind: "note", payload: [1, 2, 3] },
    ],
    components: {
      tools: { version: 2, value: { generation: 2 } },
      old: null,
    },
    frames: [{ id: "f2", reason: "custom", state: { step: 2 } }],
    currentFrame: "f2",
    config: { model: "m" },
    usage: [
      {
        source: "chat",
        model: "m",
        inputTokens: 1,
        outputTokens: 2,
        cacheReadTokens: 3,
        cacheWriteTokens: 4,
        reasoningTokens: 5,
      },
    ],
    ...(claims && { claims }),
    attachments,
  };
}

/** A session at revision 1 for which a turn is ready to be committed. */
export async function preparedTurn(database: Database): Promise<TurnOrder> {
  const store = sessions(database);
  const { generation, id } = await store.create("s");
  const handle = { id, generation };
  const { fence, commit } = await holding(store, leases(database), handle);
  await commit({
    turn: "t0",
    nodes: [said("first")],
    components: {
      tools: { version: 2, value: { generation: 1 } },
      old: { version: 1, value: "old" },
      kept: { version: 1, value: "kept" },
    },
    frames: [{ id: "f1", reason: "root", state: { step: 1 } }],
  });
  const work = queue(database);
  await work.enqueue(handle, { items: [{ kind: "input", payload: "hello" }] });
  const claimed = await work.claimTurn(fence, { boundary: "idle" });
  const file = await attachmentsIn(database).put(handle, Uint8Array.from([1, 2, 3]), {
    mediaType: "image/png",
  });
  if (claimed === undefined) throw new Error("Nothing was claimed.");
  return { fence, claims: [claimed.ref], attachments: [file.id] };
}
