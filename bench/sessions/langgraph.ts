import { readdirSync, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { sessions } from "../../src/stores/session/sessions.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { heldLease, messagesOf, toolState } from "./load.ts";
import { size } from "../sizes.ts";

const turns = size(200, 5);
/** How fast a conversation of that length is written. */
const lastTurns = size(20, 2);
const name = "chat";

interface Scenario {
  /** `full`: both flush what they write; `normal`: neither does, which is the peer's default. */
  readonly durability: "full" | "normal";
  /** Of what a tool answers in each turn: page, file and search results are long. */
  readonly toolCharacters: number;
  /** `turn`: the peer writes one checkpoint for all of a turn. `step`: one for each message and the writes that led to it, as its graphs do. */
  readonly peerWrites: "turn" | "step";
  readonly rounds: number;
}

const usual: Scenario = {
  durability: "full",
  toolCharacters: 4_000,
  peerWrites: "step",
  rounds: size(5, 1),
};

/** What a conversation took: milliseconds of each turn, and bytes of all files once they are closed. */
interface Written {
  readonly ms: readonly number[];
  readonly bytes: number;
}

/** The part of the peer that is used here. */
interface Saver {
  readonly db: { pragma(text: string): unknown; close(): void };
  setup(): void;
  put(config: object, checkpoint: object, metadata: object): Promise<object>;
  putWrites(
    config: object,
    writes: readonly (readonly [string, unknown])[],
    task: string,
  ): Promise<void>;
}
interface Peer {
  readonly SqliteSaver: { fromConnString(path: string): Saver };
}

/** One conversation, turn by turn, stored by us and by LangGraph's checkpointer on SQLite. */
export async function langgraph(): Promise<object> {
  const peer = await installedPeer();
  if (peer === undefined) return { skipped: "not installed: npm ci --prefix bench" };
  return inScratch(async (folder) => {
    const measured = (changed: Partial<Scenario>): Promise<object> =>
      compareWith(peer, join(folder, Object.keys(changed).join("-")), {
        ...usual,
        ...changed,
      });
    return {
      unit: "turns/s",
      ...(await measured({})),
      oncePerTurn: await measured({ peerWrites: "turn", rounds: size(5, 1) }),
      normal: await measured({ durability: "normal", rounds: size(3, 1) }),
      shortMessages: await measured({
        toolCharacters: 250,
        rounds: size(3, 1),
      }),
      note: `one caller, ${turns} turns of 3 messages (${usual.toolCharacters} characters of a tool, 300 others) and 2 KiB of tool state; ceiling is the peer as its graphs use it, one checkpoint per message, both flushing each write; aim: ratios ≥ 5`,
    };
  });
}

/** Its name is no literal, so that nothing but this benchmark asks for it. */
async function installedPeer(): Promise<Peer | undefined> {
  const specifier = "@langchain/langgraph-checkpoint-sqlite" as string;
  try {
    return (await import(specifier)) as Peer;
  } catch {
    return undefined;
  }
}

async function compareWith(peer: Peer, folder: string, scenario: Scenario): Promise<object> {
  const ours: Written[] = [];
  const theirs: Written[] = [];
  for (let round = 0; round < scenario.rounds; round += 1) {
    const place = (who: string): string => join(folder, `${who}-${round}`);
    ours.push(await writtenByUs(place("ours"), scenario));
    theirs.push(await writtenByPeer(peer, place("theirs"), scenario));
  }
  const speeds = (written: readonly Written[], count: number): number[] =>
    written.map(({ ms }) => perSecond(ms.slice(-count)));
  const ratio = (count: number): number => {
    const peerSpeeds = speeds(theirs, count);
    return median(speeds(ours, count).map((speed, at) => speed / (peerSpeeds[at] ?? 1)));
  };
  const bytes = median(ours.map((written) => written.bytes));
  const peerBytes = median(theirs.map((written) => written.bytes));
  return {
    value: Math.round(median(speeds(ours, turns))),
    ceiling: Math.round(median(speeds(theirs, turns))),
    ratio: rounded(ratio(turns)),
    ratioOfLastTurns: rounded(ratio(lastTurns)),
    bytes,
    peerBytes,
    bytesRatio: rounded(peerBytes / bytes),
    rounds: scenario.rounds,
  };
}

function perSecond(ms: readonly number[]): number {
  return (ms.length * 1_000) / ms.reduce((sum, one) => sum + one, 0);
}

async function writtenByUs(
  folder: string,
  { durability, toolCharacters }: Scenario,
): Promise<Written> {
  await mkdir(folder, { recursive: true });
  const database = await openSqlite(join(folder, "ours.db"), { durability });
  const store = sessions(database);
  const handle = await store.create(name, { name });
  const fence = await heldLease(database, handle);
  const ms: number[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const nodes = messagesOf(name, turn, toolCharacters);
    const value = toolState(name, turn);
    const startedMs = performance.now();
    await store.commit(handle, {
      turn: `turn-${turn}`,
      fence,
      nodes,
      components: { tools: { version: 1, value } },
    });
    ms.push(performance.now() - startedMs);
  }
  await database.close();
  return { ms, bytes: bytesIn(folder) };
}

async function writtenByPeer(
  { SqliteSaver }: Peer,
  folder: string,
  { durability, toolCharacters, peerWrites }: Scenario,
): Promise<Written> {
  await mkdir(folder, { recursive: true });
  const saver = SqliteSaver.fromConnString(join(folder, "theirs.db"));
  saver.setup();
  saver.db.pragma(`synchronous = ${durability}`);
  const messages: unknown[] = [];
  const ms: number[] = [];
  let config: object = { configurable: { thread_id: name, checkpoint_ns: "" } };
  let step = 0;
  for (let turn = 0; turn < turns; turn += 1) {
    const said = messagesOf(name, turn, toolCharacters).map(({ payload }) => payload);
    const tools = toolState(name, turn);
    const startedMs = performance.now();
    for (const added of peerWrites === "turn" ? [said] : said.map((m) => [m])) {
      if (peerWrites === "step" && step > 0)
        await saver.putWrites(config, [["messages", added]], `task-${step}`);
      messages.push(...added);
      config = await saver.put(config, checkpointOf(step, { messages, tools }), {
        source: "loop",
        step,
        parents: {},
      });
      step += 1;
    }
    ms.push(performance.now() - startedMs);
  }
  saver.db.close();
  return { ms, bytes: bytesIn(folder) };
}

function checkpointOf(step: number, values: object): object {
  return {
    v: 4,
    id: `1f000000-0000-6000-8000-${String(step).padStart(12, "0")}`,
    ts: new Date().toISOString(),
    channel_values: values,
    channel_versions: { messages: step + 1, tools: step + 1 },
    versions_seen: {},
  };
}

function bytesIn(folder: string): number {
  return readdirSync(folder)
    .map((file) => statSync(join(folder, file)).size)
    .reduce((sum, bytes) => sum + bytes, 0);
}
