import type { Database } from "../../src/sql/database.ts";
import type { NewNode } from "../../src/model/session/turn.ts";
import type { SessionHandle, UsageEntry } from "../../src/model/session/session.ts";
import { leases } from "../../src/stores/lease/leases.ts";
import type { Lease } from "../../src/stores/lease/parts.ts";
import { queue } from "../../src/stores/queue/queue.ts";
import { sessions } from "../../src/stores/session/sessions.ts";
import type { Sessions } from "../../src/stores/session/sessions.ts";
import type { TurnDraft } from "../../src/stores/session/turn/draft.ts";

/** A session with turns that are ready to be committed, one after the other. */
export interface Conversation {
  readonly handle: SessionHandle;
  readonly turns: readonly TurnDraft[];
}

const usage: UsageEntry = {
  source: "chat",
  model: "bench-large",
  inputTokens: 4_100,
  outputTokens: 210,
  cacheReadTokens: 3_900,
  cacheWriteTokens: 200,
  reasoningTokens: 0,
};

/**
 * Sessions with a lease and a claimed batch for every turn: what a turn of an
 * agent has at hand when it commits.
 */
export async function conversationsIn(
  database: Database,
  count: number,
  turnsEach: number,
): Promise<readonly Conversation[]> {
  const store = sessions(database);
  const names = Array.from({ length: count }, (_, index) => `chat-${index}`);
  return Promise.all(
    names.map(async (name) => {
      const handle = await store.create(name, { name });
      const lease = await heldLease(database, handle);
      const claims = await claimedBatches(database, lease, turnsEach);
      const turns = claims.map((claim, index) => ({
        turn: `turn-${index}`,
        fence: lease,
        nodes: messagesOf(name, index),
        components: { tools: { version: 1, value: toolState(name, index) } },
        usage: [usage],
        claims: [claim],
      }));
      return { handle, turns };
    }),
  );
}

export async function heldLease(database: Database, handle: SessionHandle): Promise<Lease> {
  const outcome = await leases(database).acquire(
    handle,
    { owner: "bench", incarnation: "first" },
    { lease: "1 hour" },
  );
  if (outcome.kind === "acquired") return outcome.lease;
  throw new Error("Somebody else has the lease.");
}

async function claimedBatches(
  database: Database,
  lease: Lease,
  count: number,
): Promise<NonNullable<TurnDraft["claims"]>> {
  const line = queue(database);
  const claims = [];
  for (let index = 0; index < count; index += 1) {
    await line.enqueue(lease.session, {
      items: [{ kind: "user_message", payload: questionOf(index) }],
      source: `http:${index}`,
    });
    const claimed = await line.claimTurn(lease, { limit: 1 });
    if (claimed === undefined) throw new Error("There was nothing to claim.");
    claims.push(claimed.ref);
  }
  return claims;
}

/** What is said in a turn: a question, what a tool found, an answer; 300 characters besides the tool's. */
export function messagesOf(
  session: string,
  turn: number,
  toolCharacters = 250,
): readonly NewNode[] {
  return [
    {
      kind: "message",
      role: "user",
      payload: { role: "user", content: questionOf(turn) },
    },
    {
      kind: "message",
      role: "tool",
      payload: {
        role: "tool",
        name: "search_orders",
        content: `${session} ${turn}: ${"found an order. ".repeat(toolCharacters / 16)}`,
      },
    },
    {
      kind: "message",
      role: "assistant",
      payload: {
        role: "assistant",
        content: `Answer ${turn}: ${"it left the warehouse. ".repeat(10)}`,
      },
    },
  ];
}

function questionOf(turn: number): string {
  return `Question ${turn}: where is the order that I made last week, please?`;
}

/** About 2 KiB of what tools keep between turns; no two are equal. */
export function toolState(session: string, turn: number): unknown {
  return {
    session,
    turn,
    calls: Array.from({ length: 20 }, (_, call) => ({
      id: `call-${turn}-${call}`,
      tool: "search_orders",
      arguments: { customer: 4_711 + call, limit: 10 },
      ok: true,
    })),
  };
}

/** Every session commits its turns, one after the other. Answers with commits per second. */
export async function commitAll(
  store: Sessions,
  conversations: readonly Conversation[],
): Promise<number> {
  let committed = 0;
  const startedMs = performance.now();
  await Promise.all(
    conversations.map(async ({ handle, turns }) => {
      for (const turn of turns) {
        const { kind } = await store.commit(handle, turn);
        if (kind !== "committed") throw new Error("It was there already.");
        committed += 1;
      }
    }),
  );
  return (committed * 1_000) / (performance.now() - startedMs);
}
