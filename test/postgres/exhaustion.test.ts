import postgres from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { isHoldfastError } from "../../src/model/errors.ts";
import { row, sql, type ChangeHint, type Database } from "../../src/kernel.ts";
import { executions } from "../../src/executions.ts";
import { rejection } from "../conformance/backend.ts";
import { withOwnServer } from "./own-server.ts";
import { until, urlWith } from "./place.ts";
import type { Place, Shell } from "./place.ts";

const draft = { role: "activity", function: "f", input: null } as const;

/** Three of them are for superusers. */
const connectionsMax = 10;

/** The same server for a user to whom no slot is reserved. */
async function urlOfPlainUser(place: Place, shell: Shell): Promise<string> {
  await shell.unsafe(`
    CREATE ROLE plain LOGIN PASSWORD 'known';
    GRANT CREATE ON DATABASE postgres TO plain`);
  return urlWith((parsed) => {
    parsed.username = "plain";
    parsed.password = "known";
  }, place.url);
}

/** Other sessions of that user, as many as the server lets in. */
class Clients {
  readonly #url: string;
  readonly #members: Shell[] = [];

  constructor(url: string) {
    this.#url = url;
    onTestFinished(() => this.leave());
  }

  get size(): number {
    return this.#members.length;
  }

  /** @returns the SQLSTATE with which the first was turned away. */
  async fill(): Promise<unknown> {
    for (;;) {
      const member = postgres(this.#url, { max: 1, onnotice: () => undefined });
      try {
        await member`SELECT 1`;
        this.#members.push(member);
      } catch (error) {
        await member.end({ timeout: 1 });
        return (error as { readonly code?: unknown }).code;
      }
    }
  }

  async leave(count: number = this.size): Promise<void> {
    const leaving = this.#members.splice(0, count);
    await Promise.all(leaving.map((member) => member.end({ timeout: 1 })));
  }
}

/** Opens once there is room: a session that has left has its slot until the server has noticed. */
async function openedIn(place: Place, ...given: Parameters<Place["open"]>): Promise<Database> {
  for (;;)
    try {
      return await place.open(...given);
    } catch (error) {
      if (!isFull(error)) throw error;
    }
}

function isFull(error: unknown): boolean {
  return isHoldfastError(error) && error.details["reason"] === "53300";
}

/** The sessions that answered so many slow questions at once. */
async function sessionsOf(database: Database, questions: number): Promise<number> {
  const found = await Promise.all(
    Array.from({ length: questions }, () =>
      database.read("session", () =>
        row<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid, pg_sleep(0.02)`),
      ),
    ),
  );
  return new Set(found.map((each) => each?.pid)).size;
}

test("a server without a free connection: an open says so, who is in goes on with what it has, and all is well again when others leave", () =>
  withOwnServer(
    async (place) => {
      const shell = place.shell();
      const url = await urlOfPlainUser(place, shell);
      // Two databases with a session beside each pool fit in.
      const options = { poolSize: 2, pollInterval: 50 } as const;
      const database = await place.open(options, url);
      const log = executions(database);
      const clients = new Clients(url);
      expect(await clients.fill()).toBe("53300");
      expect(clients.size).toBeGreaterThan(3);

      // Nobody else comes in.
      const error = await rejection(place.open(options, url));
      expect(error).toMatchObject({
        code: "DATABASE_UNREACHABLE",
        retryable: true,
        details: { reason: "53300" },
      });
      expect(error.message).toContain("poolSize");

      // The one connection there is serves all calls.
      expect(await sessionsOf(database, 12)).toBe(1);
      const create = (id: string) => log.create({ ...draft, id });
      await Promise.all(Array.from({ length: 40 }, (_, index) => create(`full-${index}`)));

      // It is cut, and its place taken: calls wait until there is another.
      await shell`
        SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
        WHERE usename = 'plain' AND query NOT LIKE 'SELECT 1%'`;
      expect(await clients.fill()).toBe("53300");
      const late = create("late");
      // One for calls, and one for the session beside them, which may be faster.
      await clients.leave(2);
      expect(await late).toMatchObject({ id: "late" });

      // Who subscribes now hears when a session can be had.
      await clients.fill();
      const hints: ChangeHint[] = [];
      database.subscribe((hint) => hints.push(hint));

      await clients.leave();
      await until(async () => (await sessionsOf(database, 12)) > 1);
      const second = await openedIn(place, options, url);
      // The first hint is that the session is there.
      await until(() => hints.length > 0);
      await executions(second).create({ ...draft, id: "second" });
      await until(() => hints.some((hint) => hint.kind === "change" && hint.key === "second"));
      expect(await log.get("full-39")).toMatchObject({ id: "full-39" });
    },
    { connectionsMax },
  ));
