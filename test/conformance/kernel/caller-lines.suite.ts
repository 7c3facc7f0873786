import { describe, expect, test } from "vitest";
import { rows, run, sql, type Database } from "../../../src/kernel.ts";
import { executions } from "../../../src/executions.ts";
import { sessions, leases } from "../../../src/sessions.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { addNote, createNoteTable } from "../notes.ts";

/** Calls of a user that fail, by their code: each in a function with a name of its own. */
const failing: Readonly<
  Record<string, readonly [string, (database: Database) => Promise<unknown>]>
> = {
  "a statement with a mistake": [
    "STATEMENT_FAILED",
    async function mistypedTable(database) {
      await database.write("mine", () => run(sql`DELETE FROM app_nowhere`));
    },
  ],
  "a constraint": [
    "CONSTRAINT_VIOLATED",
    async function insertTwice(database) {
      await database.write(addNote, { id: "a" });
      await database.write("again", function* () {
        yield* addNote({ id: "b" });
        yield* addNote({ id: "a" });
      });
    },
  ],
  "a read with a mistake": [
    "STATEMENT_FAILED",
    async function readNowhere(database) {
      return await database.read("mine", () => rows(sql`SELECT 1 FROM nowhere`));
    },
  ],
  "a read that would write": [
    "WRITE_IN_READ",
    async function writeInRead(database) {
      await database.read("mine", () => run(sql`DELETE FROM app_note`));
    },
  ],
  "a call under a timeout": [
    "STATEMENT_FAILED",
    async function readInTime(database) {
      const options = { timeout: "1 min" } as const;
      const body = () => rows(sql`SELECT 1 FROM nowhere`);
      await database.read("mine", body, options);
    },
  ],
  "a store's refusal": [
    "VERSION_CONFLICT",
    async function appendLate(database) {
      const store = executions(database);
      await store.create({ id: "e", function: "f", input: 1 });
      await store.finish("e", 7, { kind: "completed", value: 1 });
    },
  ],
  "a store's read": [
    "EXECUTION_NOT_FOUND",
    async function readMissing(database) {
      await executions(database).get("missing");
    },
  ],
  "a wait whose time is over": [
    "DEADLINE_EXCEEDED",
    async function waitInVain(database) {
      const store = executions(database);
      await store.create({ id: "w", function: "f", input: 1 });
      await store.waitForResult("w", { timeout: 1 });
    },
  ],
  "a wait for what is not there": [
    "EXECUTION_NOT_FOUND",
    async function waitForMissing(database) {
      await executions(database).waitForResult("missing");
    },
  ],
  "several calls at once": [
    "SESSION_NOT_FOUND",
    async function callTogether(database) {
      await Promise.all([
        sessions(database).create("s"),
        leases(database).acquire("none", { owner: "o", incarnation: "1" }),
      ]);
    },
  ],
};

/** Where in the caller's own code something failed is what everybody looks for first. */
export function callerLinesSuite(backend: Backend): void {
  describe("the stack of an error shows the caller's own line:", () => {
    test.each(Object.entries(failing))("%s", (_, [code, call]) =>
      withDatabase(backend, async (database) => {
        await database.write("tables", createNoteTable);
        const error = await rejection(call(database));
        expect(error.code).toBe(code);
        const [first, ...lines] = (error.stack ?? "").split("\n");
        expect(first).toBe(`HoldfastError: ${error.message.split("\n")[0]}`);
        const callers = lines.filter(
          (line) => line.includes(call.name) && line.includes("caller-lines.suite.ts:"),
        );
        expect(callers).toHaveLength(1);
      }),
    );
  });

  test("an error that is the caller's own stays the same object", () =>
    withDatabase(backend, async (database) => {
      const own = new Error("mine");
      const { stack } = own;
      const body = () => {
        throw own;
      };
      expect(await rejection(database.write("mine", body))).toBe(own);
      expect(await rejection(database.read("mine", body))).toBe(own);
      expect(own.stack).toBe(stack);
    }));
}
