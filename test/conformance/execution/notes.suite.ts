import { describe, expect, test } from "vitest";
import { rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type {
  BacktraceDraft,
  WhichBacktrace,
} from "../../../src/stores/execution/read/backtraces.ts";
import type {
  ListLogsOptions,
  LogEntry,
  LogLevel,
  LogLine,
} from "../../../src/stores/execution/read/logs.ts";
import type { Page } from "../../../src/stores/list.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { append, create, patched, run } from "./records.ts";

const messages = (page: Page<LogLine>): string[] => page.items.map(({ message }) => message);

const told = ({ execution, message }: LogLine): string => `${execution} ${message}`;

function say(database: Database, name: string, ...lines: readonly string[]): Promise<void> {
  return executions(database).log(
    name,
    lines.map((message): LogEntry => ({ level: "info", message })),
  );
}

/** The page after another one of the same list. */
const following = (
  database: Database,
  name: string,
  { next }: Page<LogLine>,
  options: ListLogsOptions,
): Promise<Page<LogLine>> => executions(database).logs(name, { ...options, after: String(next) });

export function executionNotesSuite(backend: Backend): void {
  const onDatabase = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, body);

  describe("log lines", () => {
    test(
      "come back as they were written, in order, page by page",
      onDatabase(async (database) => {
        await create(database, "a");
        await create(database, "b");
        const clock = manualClock(7);
        const { log, logs } = executions(database, { clock });
        await log("a", [
          {
            level: "warn",
            message: "näive 🪢",
            run,
            step: "charge",
            attempt: 2,
            data: { n: 1 },
          },
          { level: "trace", message: "" },
        ]);
        await say(database, "b", "of another");
        await say(database, "a", "third");
        const first = await logs("a", { limit: 2 });
        const [one, two] = first.items;
        expect(one).toEqual({
          key: one?.key,
          execution: "a",
          at: 7,
          run: "Run_01HF7YAT00ABCDEFGHJKMNPQRS",
          step: "charge",
          attempt: 2,
          level: "warn",
          message: "näive 🪢",
          data: { n: 1 },
        });
        expect(two).toMatchObject({
          at: 7,
          run: null,
          step: null,
          attempt: null,
          data: undefined,
        });
        const second = await following(database, "a", first, { limit: 2 });
        expect(messages(second)).toEqual(["third"]);
        expect(second.next).toBeUndefined();
        const from = Number(two?.key) + 1;
        expect(await logs("a", { from })).toEqual(second);
      }),
    );

    test(
      "of all below an execution come in the order of writing",
      onDatabase(async (database) => {
        for (const name of ["a", "a-1", "a.n:x_1", "a.n:x_1.n:y_1", "a/1"])
          await create(database, name);
        await say(database, "a.n:x_1", "1");
        await say(database, "a-1", "other");
        await say(database, "a", "2", "3");
        await say(database, "a/1", "other");
        await say(database, "a.n:x_1.n:y_1", "4");
        const { logs } = executions(database);
        const options = { limit: 3, includeDerived: true };
        const first = await logs("a", options);
        expect(first.items.map(told)).toEqual(["a.n:x_1 1", "a 2", "a 3"]);
        const second = await following(database, "a", first, options);
        expect(messages(second)).toEqual(["4"]);
        expect(second.next).toBeUndefined();
        expect(messages(await logs("a.n:x_1", options))).toEqual(["1", "4"]);
        for (const includeDerived of [true, false])
          expect(await rejection(logs("nobody", { includeDerived }))).toMatchObject({
            code: "EXECUTION_NOT_FOUND",
          });
        expect(await logs("a/1", { from: 1_000_000 })).toEqual({
          items: [],
          damaged: [],
          next: undefined,
        });
      }),
    );

    test(
      "of a tree are found beyond many of others",
      onDatabase(async (database) => {
        for (const name of ["a", "a.n:x_1", "noisy"]) await create(database, name);
        const noise = Array.from({ length: 150 }, () => "noise");
        const noises = async (times: number) => {
          for (let n = 0; n < times; n += 1) await say(database, "noisy", ...noise);
        };
        await noises(1);
        await say(database, "a", "first");
        await noises(14);
        await say(database, "a.n:x_1", "last");
        const options = { includeDerived: true };
        const first = await executions(database).logs("a", options);
        expect(messages(first)).toEqual(["first"]);
        const second = await following(database, "a", first, options);
        expect(messages(second)).toEqual(["last"]);
        expect(second.next).toBeUndefined();
      }),
    );

    test(
      "end a page where they are too large together, of one execution and of a tree",
      onDatabase(async (database) => {
        await create(database, "a");
        for (const letter of ["a", "b", "c"])
          await executions(database).log("a", [
            { level: "info", message: letter, data: letter.repeat(600_000) },
          ]);
        for (const includeDerived of [false, true]) {
          const options = { includeDerived };
          const pages: string[][] = [];
          let page = await executions(database).logs("a", options);
          pages.push(messages(page));
          while (page.next !== undefined) {
            page = await following(database, "a", page, options);
            pages.push(messages(page));
          }
          expect(pages).toEqual([["a"], ["b"], ["c"]]);
        }
      }),
    );

    test(
      "are refused for an unknown execution, or when they are not lines; nothing is kept then",
      onDatabase(async (database) => {
        await create(database, "a");
        const line = { level: "info", message: "m" } as const;
        const refused = (name: string, ...lines: readonly object[]) =>
          rejection(executions(database).log(name, lines as readonly (typeof line)[]));
        expect(await refused("nobody", line)).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
        expect(await refused("a")).toMatchObject({ code: "OPTION_INVALID" });
        expect(await refused("a", line, { ...line, level: "loud" as LogLevel })).toMatchObject({
          code: "OPTION_INVALID",
          details: { option: "level" },
        });
        const limit = 64 * 1024;
        expect(
          await refused("a", line, {
            ...line,
            message: "é".repeat(limit / 2 + 1),
          }),
        ).toMatchObject({
          code: "VALUE_TOO_LARGE",
          details: { size: 65_538, limit: 65_536 },
        });
        const list = () => executions(database).logs("a");
        expect(await list()).toEqual({
          items: [],
          damaged: [],
          next: undefined,
        });
        await say(database, "a", "é".repeat(limit / 2));
        expect((await list()).items).toHaveLength(1);
      }),
    );
  });

  describe("backtraces", () => {
    const range = (from: number, to: number, stack: string): BacktraceDraft => ({
      from,
      to,
      stack,
    });
    const read = (database: Database, which: WhichBacktrace, name = "a") =>
      executions(database).backtrace(name, which);
    const add = (database: Database, name: string, ...ranges: readonly BacktraceDraft[]) =>
      executions(database).addBacktraces(name, ranges);

    test(
      "[E88] the first, the last and the one of a version are found; a range begins with its first version and ends before its last",
      onDatabase(async (database) => {
        await create(database, "a");
        await add(database, "a", range(4, 6, "h2"), range(1, 3, "h1"));
        expect(await read(database, "first")).toEqual({
          from: 1,
          to: 3,
          hash: database.sha256Hex("h1"),
          stack: "h1",
        });
        expect(await read(database, "last")).toEqual({
          from: 4,
          to: 6,
          hash: database.sha256Hex("h2"),
          stack: "h2",
        });
        for (const [version, stack] of [
          [1, "h1"],
          [2, "h1"],
          [4, "h2"],
          [5, "h2"],
        ] as const)
          expect(await read(database, { version })).toMatchObject({ stack });
        for (const version of [0, 3, 6])
          expect(await rejection(read(database, { version }))).toMatchObject({
            code: "BACKTRACE_NOT_FOUND",
            details: { id: "a", which: version },
          });
      }),
    );

    test(
      "[E88] there is none of an execution without, and none of an unknown one",
      onDatabase(async (database) => {
        await create(database, "a");
        for (const which of ["first", "last", { version: 0 }] as const)
          expect(await rejection(read(database, which))).toMatchObject({
            code: "BACKTRACE_NOT_FOUND",
          });
        expect(await rejection(read(database, "first", "nobody"))).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
        expect(await rejection(add(database, "nobody", range(0, 1, "h")))).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
      }),
    );

    test(
      "[E88] a list of events shows the backtrace of each, once, also where ranges overlap",
      onDatabase(async (database) => {
        await create(database, "a");
        await append(database, "a", 1, 5, ...["p", "q", "r", "s"].map(patched));
        await add(database, "a", range(1, 4, "outer"), range(2, 3, "inner"));
        const list = async (backtraces: boolean) => {
          const { items } = await executions(database).events("a", {
            backtraces,
          });
          return items.map(({ version, backtrace }) => [version, backtrace]);
        };
        const hash = (stack: string) => database.sha256Hex(stack);
        expect(await list(true)).toEqual([
          [0, undefined],
          [1, hash("outer")],
          [2, hash("inner")],
          [3, hash("outer")],
          [4, undefined],
        ]);
        expect((await list(false)).every(([, found]) => found === undefined)).toBe(true);
      }),
    );

    test(
      "[E88] equal stacks are kept once, and a range that begins where another does is refused with all beside it",
      onDatabase(async (database) => {
        await create(database, "a");
        await create(database, "b");
        await add(database, "a", range(0, 1, "same"), range(1, 2, "same"));
        await add(database, "b", range(0, 9, "same"));
        // The same again is the call repeated.
        await add(database, "b", range(0, 9, "same"));
        const error = await rejection(add(database, "a", range(7, 8, "new"), range(1, 5, "other")));
        expect(error).toMatchObject({
          code: "BACKTRACE_EXISTS",
          details: { id: "a", from: 1 },
        });
        const stacks = await database.read("stacks", () =>
          rows(sql`SELECT hash, stack FROM holdfast_execution_stack`),
        );
        expect(stacks).toEqual([{ hash: database.sha256Hex("same"), stack: "same" }]);
        expect(await read(database, "last")).toMatchObject({ from: 1 });
      }),
    );

    test(
      "a range is not empty, and a stack has at most 64 KiB",
      onDatabase(async (database) => {
        await create(database, "a");
        const refused = (given: BacktraceDraft) => rejection(add(database, "a", given));
        for (const given of [range(2, 2, "h"), range(-1, 2, "h")])
          expect(await refused(given)).toMatchObject({
            code: "OPTION_INVALID",
          });
        expect(await refused({ ...range(0, 1, "h"), stack: "x".repeat(65_537) })).toMatchObject({
          code: "VALUE_TOO_LARGE",
        });
      }),
    );
  });
}
