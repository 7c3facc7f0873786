import { HoldfastError } from "holdfast";
import { openSqlite } from "holdfast/sqlite";
import { leases, queue, sessions } from "holdfast/sessions";

const database = await openSqlite(":memory:");
const conversations = sessions(database);
const inbox = queue(database);

// A message may arrive twice; it is queued once, whichever process works on the session.
const chat = await conversations.create("chat-7", { name: "Trip to Oslo" });
const message = { kind: "input", payload: "Which museum is open on Monday?" };
for (const attempt of [1, 2]) {
  const { kind } = await inbox.enqueue(chat.id, {
    items: [message],
    source: "webhook-991",
  });
  console.log(`attempt ${attempt}: ${kind}`);
}

// One holder at a time. When its process is killed, the next one gets the lease at once.
const me = { owner: "worker-a", incarnation: "1" };
const lease = await leases(database).waitForLease(chat.id, me);
const work = await inbox.claimTurn(lease);
if (work === undefined) throw new Error("Nothing is queued.");

// Messages, state, usage and the consumed message become visible together, or not at all.
const turn = {
  turn: "turn-1",
  fence: lease,
  claims: [work.ref],
  nodes: [
    { kind: "message", role: "user", payload: message.payload },
    { kind: "message", role: "assistant", payload: "The Munch Museum." },
  ],
  components: { plan: { version: 1, value: { city: "Oslo", day: "Monday" } } },
  usage: [{ source: "chat", model: "small-1", inputTokens: 40, outputTokens: 6 }],
};
const committed = await conversations.commit(chat, turn);
console.log(`${committed.kind}: revision ${committed.revision}`);

// After a lost answer, repeating the turn returns its receipt.
console.log((await conversations.commit(chat, turn)).kind);

// A worker that lost the lease changes nothing, and gets LEASE_LOST.
await leases(database).release(lease);
try {
  await conversations.commit(chat, { turn: "turn-2", fence: lease, nodes: [] });
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error;
  console.log(error.code);
}

const { nodes } = await conversations.path(chat);
for (const { role, payload } of nodes) console.log(role, payload);
await database.close();

// Output:
// attempt 1: queued
// attempt 2: duplicate
// committed: revision 1
// replayed
// LEASE_LOST
// user Which museum is open on Monday?
// assistant The Munch Museum.
