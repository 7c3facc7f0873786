import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError } from "holdfast";
import { openSqlite } from "holdfast/sqlite";
import { awaitEvents, effects } from "holdfast/effects";
import { sessions } from "holdfast/sessions";
import type { Database } from "holdfast/kernel";

// The calls that reached the outside world.
const called: string[] = [];
async function callModel(prompt: string): Promise<string> {
  called.push("model");
  return prompt.includes("Bergen") ? "The 8:25 train." : "Where to?";
}
const mailbox: { receive?: (token: string) => void } = {};
async function askByMail(token: string): Promise<void> {
  called.push("mail");
  mailbox.receive?.(token);
}

const turn = { kind: "turn", session: "chat-7", id: "turn-1" };

/** One turn of an agent. Running it again from its start repeats no effect. */
async function takeTurn(database: Database): Promise<string> {
  const world = effects(database);
  const prompt = "Take me to Bergen.";
  const plan = await world.execute(turn, "plan", { kind: "llm", input: { prompt } }, () =>
    callModel(prompt),
  );

  // A person has to agree. The answer may come in any process, before or after the wait.
  const approvals = awaitEvents(database);
  const { token } = await approvals.open(turn, "approval");
  await world.execute(turn, "ask", { kind: "mail", input: { plan } }, () => askByMail(token));
  const answer = await approvals.wait(turn, "approval");
  return answer.kind === "resolved" ? `${plan} Booked.` : "Not booked.";
}

const mail = new Promise<string>((receive) => Object.assign(mailbox, { receive }));
const folder = mkdtempSync(join(tmpdir(), "holdfast-example-"));
const path = join(folder, "trip.db");
const database = await openSqlite(path);
await sessions(database).create("chat-7");
const running = takeTurn(database);

// Any holder of the token can answer. The first answer counts; repeating it changes nothing.
const token = await mail;
for (const attempt of [1, 2]) {
  const { kind } = await awaitEvents(database).resolve(token, { agreed: true });
  console.log(`answer ${attempt}: ${kind}`);
}
console.log(await running, called);
await database.close();

// If the process dies before the turn is committed, the next one runs it again and only reads.
const reopened = await openSqlite(path);
console.log(await takeTurn(reopened), called);

// A key used for another call is refused, with the path of the first difference.
try {
  const other = { kind: "llm", input: { prompt: "Take me to Oslo." } };
  await effects(reopened).execute(turn, "plan", other, () => callModel("Oslo"));
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error;
  console.log(error.code, error.details["path"]);
}
await reopened.close();
rmSync(folder, { recursive: true });

// Output:
// answer 1: accepted
// answer 2: replayed
// The 8:25 train. Booked. [ 'model', 'mail' ]
// The 8:25 train. Booked. [ 'model', 'mail' ]
// EFFECT_CONFLICT $.input.prompt
