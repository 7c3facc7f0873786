import assert from "node:assert/strict";
import fc from "fast-check";
import { expect, test } from "vitest";
import { roundsOn, seed } from "../../depth.ts";
import { isHoldfastError } from "../../../src/model/errors.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { withPlace, type Backend } from "../backend.ts";
import { ann } from "../execution/fixture.ts";
import { expectSound } from "../sound.ts";
import {
  agentFixture,
  claimed,
  committed,
  passDeadline,
  support,
  textsOf,
  type AgentFixture,
  type TakenTurn,
} from "./agents.ts";

const kinds = [
  "send",
  "send",
  "send",
  "delayed",
  "wake",
  "command",
  "take",
  "take",
  "take",
  "claim",
  "claim",
  "claim",
  "join",
  "commit",
  "commit",
  "pass",
  "return",
  "throw",
  "cancel",
  "force",
  "deadline",
  "die",
  "pause",
  "unpause",
  "unpark",
  "erase",
  "retention",
  "retry",
  "unassign",
  "assign",
  "clock",
] as const;

type Kind = (typeof kinds)[number];

/**
 * A session whose turns end in every way, in any order. Whatever happens, no message is lost or
 * consumed twice, work that waits has a turn, and no turn holds what is not its own.
 */
class TurnEnds {
  readonly #fixture: AgentFixture;
  readonly #sent = new Set<string>();
  readonly #consumed: string[] = [];
  readonly #turns = new Set<string>();
  #taken: TakenTurn | undefined;
  #claims: {
    readonly ref: { claim: string; batches: readonly string[] };
    readonly texts: string[];
  }[] = [];
  #commits = 0;
  #last = 0;

  constructor(fixture: AgentFixture) {
    this.#fixture = fixture;
  }

  async take(kind: Kind): Promise<void> {
    try {
      await this.#do(kind);
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
    }
    await this.#invariants();
  }

  async #do(kind: Kind): Promise<unknown> {
    const { queue, sessions, runs, clock } = this.#fixture;
    const taken = this.#taken;
    switch (kind) {
      case "send":
      case "delayed":
      case "wake":
      case "command":
        return this.#enqueue(kind);
      case "take":
        return this.#take();
      case "claim":
      case "join":
        return taken && this.#claim(taken, kind);
      case "commit":
      case "pass":
        return taken && this.#commit(taken, kind === "commit");
      case "return":
      case "throw":
        if (taken === undefined) return undefined;
        await runs.finish(
          taken.id,
          taken.version,
          kind === "return"
            ? { kind: "completed", value: 1 }
            : { kind: "failed", error: { name: "Error", message: "no" } },
          { fence: ann },
        );
        return (this.#taken = undefined);
      case "cancel":
        return runs.cancel(await this.#open());
      case "force":
        return runs.cancel(await this.#open(), { force: true });
      case "deadline":
        await passDeadline(this.#fixture, await this.#open());
        return undefined;
      case "die":
        clock.advance(4_000_000);
        return runs.expireTimers();
      case "pause":
        return runs.pause(await this.#open());
      case "unpause":
        return runs.unpause(await this.#open());
      case "unpark":
        return runs.unpark(await this.#open());
      case "erase":
        for (const id of this.#turns) await runs.erase(id).catch(unlessHoldfast);
        return undefined;
      case "retention":
        clock.advance(1);
        return runs.removeFinished({ olderThan: 1 });
      case "retry":
        return queue.retry("chat");
      case "unassign":
        return sessions.assign("chat", null);
      case "assign":
        return sessions.assign("chat", "support");
      default:
        return clock.advance(50_000);
    }
  }

  async #enqueue(kind: "send" | "delayed" | "wake" | "command"): Promise<void> {
    const { queue, clock } = this.#fixture;
    const text = `${kind}-${this.#sent.size}`;
    this.#sent.add(text);
    await queue.enqueue("chat", {
      items: [{ kind, payload: text, ...(kind === "command" && { class: "command" as const }) }],
      slot: kind === "send" ? "join" : "exclusive",
      source: kind === "wake" ? { process: "p", sequence: this.#sent.size } : text,
      ...(kind === "delayed" && { availableAt: clock.now() + 40_000 }),
    });
  }

  async #open(): Promise<string> {
    return (await this.#fixture.sessions.head("chat")).openTurn ?? "none";
  }

  async #take(): Promise<void> {
    const { runs } = this.#fixture;
    for (const suspects of ["none", "alone"] as const) {
      const { locked } = await runs.lockPending({
        holder: ann,
        lease: "1 hour",
        functions: [support],
        limit: suspects === "alone" ? 1 : 100,
        suspects,
      });
      const open = await this.#open();
      for (const { id, nextVersion } of locked)
        if (id === open) this.#taken = { id, version: nextVersion };
        else await runs.finish(id, nextVersion, { kind: "completed", value: 0 }, { fence: ann });
    }
  }

  async #claim(turn: TakenTurn, kind: "claim" | "join"): Promise<void> {
    const options =
      kind === "claim" ? {} : ({ boundary: "activeTurn", key: `s${this.#commits}` } as const);
    const work = await claimed(this.#fixture, turn, options);
    if (work === undefined) return;
    const texts = textsOf([...work.batches, ...work.setAside]) as string[];
    if (!this.#claims.some(({ ref }) => ref.claim === work.ref.claim))
      this.#claims.push({ ref: work.ref, texts });
  }

  async #commit(turn: TakenTurn, release: boolean): Promise<void> {
    const claims = this.#claims;
    this.#claims = [];
    this.#commits += 1;
    const name = `t${this.#commits}`;
    const refs = claims.map(({ ref }) => ref);
    await committed(this.#fixture, turn, { turn: name, claims: refs, release });
    this.#consumed.push(...claims.flatMap(({ texts }) => texts));
  }

  async #invariants(): Promise<void> {
    const { database } = this.#fixture;
    const found = await database.read("invariants", function* () {
      const [session] = yield* rows<{
        key: number;
        agent: string | null;
        turns: number;
        open_turn: string | null;
      }>(
        sql`SELECT key, agent, turns, open_turn FROM holdfast_session WHERE id = 'chat' AND deleted_at IS NULL`,
      );
      return {
        session,
        runs: yield* rows<{ id: string; state: string; session: number }>(
          sql`SELECT id, state, session FROM holdfast_execution WHERE session IS NOT NULL`,
        ),
        batches: yield* rows<{ turn: string | null; is_held_back: number; payload: string }>(sql`
          SELECT b.turn, b.is_held_back, i.payload FROM holdfast_queue_batch b
          JOIN holdfast_queue_item i ON i.batch = b.key`),
      };
    });
    const { session, runs, batches } = found;
    assert(session !== undefined);
    const { agent, turns, open_turn: open } = session;
    assert(turns >= this.#last, "turns went back");
    this.#last = turns;
    if (open === null) {
      assert(
        agent === null || batches.every(({ is_held_back: isHeldBack }) => isHeldBack === 1),
        "work waits without a turn",
      );
    } else {
      this.#turns.add(open);
      const run = runs.find(({ id }) => id === open);
      assert(run !== undefined && run.state !== "finished", "the open turn has no run");
    }
    for (const { turn } of batches)
      assert(turn === null || turn === open, "a batch is held by a closed turn");
    const there = batches.map(({ payload }) => JSON.parse(payload) as string);
    assert.deepEqual(
      [...there, ...this.#consumed].toSorted(),
      [...this.#sent].toSorted(),
      "each message is queued or consumed, once",
    );
  }

  /** Whatever has happened, the session goes on until everything is consumed. */
  async drain(): Promise<void> {
    const { sessions, runs, clock } = this.#fixture;
    await sessions.assign("chat", "support");
    await runs.cancel(await this.#open(), { force: true }).catch(unlessHoldfast);
    clock.advance(100_000);
    await this.#enqueue("send");
    for (let rounds = 0; (await this.#open()) !== "none"; rounds += 1) {
      assert(rounds < 200, "the session does not come to rest");
      this.#claims = [];
      this.#taken = undefined;
      await this.#take();
      assert(this.#taken !== undefined, "the open turn cannot be taken");
      await this.#claim(this.#taken, "claim");
      await this.#commit(this.#taken, true);
      await this.#invariants();
    }
    assert.deepEqual(this.#consumed.toSorted(), [...this.#sent].toSorted());
  }
}

function unlessHoldfast(error: unknown): void {
  if (!isHoldfastError(error)) throw error;
}

const stories: readonly (readonly Kind[])[] = [
  ["send", "take", "claim", "force", "retry", "take", "claim", "die", "force", "send", "take"],
  ["send", "take", "claim", "send", "pass", "throw", "take", "claim", "return"],
  ["delayed", "send", "take", "claim", "commit", "clock", "take", "claim", "cancel", "return"],
  [
    "send",
    "take",
    "die",
    "take",
    "die",
    "take",
    "die",
    "take",
    "die",
    "take",
    "die",
    "send",
    "unpark",
  ],
  ["send", "pause", "wake", "force", "take", "claim", "commit", "erase", "retention", "send"],
];

export function turnEndsPropertySuite(backend: Backend): void {
  test(
    "[RN15] [RN16] any ends of turns in any order leave the session able to continue, and lose no message",
    () =>
      withPlace(backend, async (place) => {
        const clock = manualClock(1_000);
        const database = await place.open({ clock });
        let sessions = 0;
        await fc.assert(
          fc.asyncProperty(
            fc.array(fc.constantFrom(...kinds), { maxLength: 40 }),
            async (steps) => {
              sessions += 1;
              const fixture = agentFixture(place, database, clock);
              await fixture.sessions.erase("chat");
              await fixture.sessions.create("chat", { agent: "support" });
              const turnEnds = new TurnEnds(fixture);
              for (const step of steps) await turnEnds.take(step);
              await turnEnds.drain();
            },
          ),
          {
            seed,
            numRuns: roundsOn(backend, { deep: 1_500, short: 40, least: stories.length + 5 }),
            examples: stories.map((story) => [[...story]]),
          },
        );
        expect(sessions).toBeGreaterThanOrEqual(stories.length);
        await expectSound(database);
      }),
    300_000,
  );
}
