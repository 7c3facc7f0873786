import { describe, expect, test } from "vitest";
import { rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import {
  appendBacktraces,
  readBacktrace,
} from "../../../src/stores/execution/read/backtraces.ts";
import type {
  BacktraceRange,
  ReadBacktrace,
} from "../../../src/stores/execution/read/backtraces.ts";
import { appendLogs } from "../../../src/stores/execution/read/logs.ts";
import type {
  LogLevel,
  NewLogLine,
} from "../../../src/stores/execution/read/logs.ts";
import { listEvents } from "../../../src/stores/execution/read/read-events.ts";
import { listLogs } from "../../../src/stores/execution/read/read-logs.ts";
import type {
  LogLine,
  LogPage,
} from "../../../src/stores/execution/read/read-logs.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { append, codec, create, id, patched, run } from "./records.ts";

const messages = (page: LogPage): string[] =>
  page.items.map(({ message }) => message);

const told = ({ execution, message }: LogLine): string =>
  `${execution} ${message}`;

function say(
  database: Database,
  name: string,
  ...lines: readonly string[]
): Promise<void> {
  return database.write(appendLogs, {
    id: id(name),
    lines: lines.map((message): NewLogLine => ({
      at: 5,
      level: "info",
      message,
    })),
  });
}

export function executionNotesSuite(backend: Backend): void {
  const onDatabase = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, body);

  describe("log lines", () => {
    test(
      "come back as they were written, in order, page by page",
      onDatabase(async (database) => {
        await create(database, "a");
        await create(database, "b");
        await database.write(appendLogs, {
          id: id("a"),
          lines: [
            {
              at: 7,
              level: "warn",
              message: "näive 🪢",
              run,
              payload: codec.value({ n: 1 }),
            },
            { at: 6, level: "trace", message: "" },
          ],
        });
        await say(database, "b", "of another");
        await say(database, "a", "third");
        const list = (limit: number, after?: number) =>
          database.read(listLogs, { id: id("a"), limit, after });
        const first = await list(2);
        const [one, two] = first.items;
        expect(one).toEqual({
          key: one?.key,
          execution: "a",
          at: 7,
          run: "Run_01HF7YAT00ABCDEFGHJKMNPQRS",
          level: "warn",
          message: "näive 🪢",
          payload: one?.payload,
        });
        expect(one?.payload && codec.readValue(one.payload)).toEqual({ n: 1 });
        expect(two).toMatchObject({ at: 6, run: null, payload: null });
        expect(first.next).toBe(two?.key);
        const second = await list(2, first.next);
        expect(messages(second)).toEqual(["third"]);
        expect(second.next).toBeUndefined();
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
        const list = (name: string, limit: number, after?: number) =>
          database.read(listLogs, {
            id: id(name),
            limit,
            after,
            includeDerived: true,
          });
        const first = await list("a", 3);
        expect(first.items.map(told)).toEqual(["a.n:x_1 1", "a 2", "a 3"]);
        const second = await list("a", 3, first.next);
        expect(messages(second)).toEqual(["4"]);
        expect(second.next).toBeUndefined();
        expect(messages(await list("a.n:x_1", 10))).toEqual(["1", "4"]);
        expect(await list("nobody", 10)).toEqual({
          items: [],
          damaged: [],
          next: undefined,
        });
      }),
    );

    test(
      "of a tree are found beyond many of others",
      onDatabase(async (database) => {
        for (const name of ["a", "a.n:x_1", "noisy"])
          await create(database, name);
        const noise = Array.from({ length: 150 }, () => "noise");
        const noises = async (times: number) => {
          for (let n = 0; n < times; n += 1)
            await say(database, "noisy", ...noise);
        };
        await noises(1);
        await say(database, "a", "first");
        await noises(14);
        await say(database, "a.n:x_1", "last");
        const list = (after?: number) =>
          database.read(listLogs, {
            id: id("a"),
            limit: 10,
            after,
            includeDerived: true,
          });
        const first = await list();
        expect(messages(first)).toEqual(["first"]);
        const second = await list(first.next);
        expect(messages(second)).toEqual(["last"]);
        expect(second.next).toBeUndefined();
      }),
    );

    test(
      "are refused for an unknown execution, or when they are not lines; nothing is kept then",
      onDatabase(async (database) => {
        await create(database, "a");
        const line = { at: 1, level: "info", message: "m" } as const;
        const refused = (name: string, ...lines: readonly object[]) =>
          rejection(
            database.write(appendLogs, {
              id: id(name),
              lines: lines as readonly (typeof line)[],
            }),
          );
        expect(await refused("nobody", line)).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
        expect(await refused("a")).toMatchObject({ code: "OPTION_INVALID" });
        expect(
          await refused("a", line, { ...line, level: "loud" as LogLevel }),
        ).toMatchObject({
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
        const list = () => database.read(listLogs, { id: id("a"), limit: 9 });
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
    const range = (from: number, to: number, hash: string): BacktraceRange => ({
      from,
      to,
      hash,
      stack: `at ${hash}`,
    });
    const read = (
      database: Database,
      which: ReadBacktrace["which"],
      name = "a",
    ) => database.read(readBacktrace, { id: id(name), which });

    test(
      "[E88] the first, the last and the one of a version are found; a range begins with its first version and ends before its last",
      onDatabase(async (database) => {
        await create(database, "a");
        await database.write(appendBacktraces, {
          id: id("a"),
          ranges: [range(4, 6, "h2"), range(1, 3, "h1")],
        });
        expect(await read(database, "first")).toEqual({
          from: 1,
          to: 3,
          hash: "h1",
          stack: "at h1",
        });
        expect(await read(database, "last")).toEqual({
          from: 4,
          to: 6,
          hash: "h2",
          stack: "at h2",
        });
        for (const [version, hash] of [
          [1, "h1"],
          [2, "h1"],
          [4, "h2"],
          [5, "h2"],
        ] as const)
          expect(await read(database, { version })).toMatchObject({ hash });
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
        expect(
          await rejection(read(database, "first", "nobody")),
        ).toMatchObject({ code: "EXECUTION_NOT_FOUND" });
        expect(
          await rejection(
            database.write(appendBacktraces, {
              id: id("nobody"),
              ranges: [range(0, 1, "h")],
            }),
          ),
        ).toMatchObject({ code: "EXECUTION_NOT_FOUND" });
      }),
    );

    test(
      "[E88] a list of events shows the backtrace of each, once, also where ranges overlap",
      onDatabase(async (database) => {
        await create(database, "a");
        await append(database, "a", 1, 5, ...["p", "q", "r", "s"].map(patched));
        await database.write(appendBacktraces, {
          id: id("a"),
          ranges: [range(1, 4, "outer"), range(2, 3, "inner")],
        });
        const list = async (backtraces: boolean) => {
          const { items } = await database.read(listEvents, {
            id: id("a"),
            limit: 10,
            backtraces,
          });
          return items.map(({ version, backtrace }) => [version, backtrace]);
        };
        expect(await list(true)).toEqual([
          [0, undefined],
          [1, "outer"],
          [2, "inner"],
          [3, "outer"],
          [4, undefined],
        ]);
        expect(
          (await list(false)).every(([, hash]) => hash === undefined),
        ).toBe(true);
      }),
    );

    test(
      "[E88] equal stacks are kept once, and a range that begins where another does is refused with all beside it",
      onDatabase(async (database) => {
        await create(database, "a");
        await create(database, "b");
        await database.write(appendBacktraces, {
          id: id("a"),
          ranges: [range(0, 1, "same"), range(1, 2, "same")],
        });
        await database.write(appendBacktraces, {
          id: id("b"),
          ranges: [range(0, 9, "same")],
        });
        // The same again is the call repeated.
        await database.write(appendBacktraces, {
          id: id("b"),
          ranges: [range(0, 9, "same")],
        });
        const error = await rejection(
          database.write(appendBacktraces, {
            id: id("a"),
            ranges: [range(7, 8, "new"), range(1, 5, "other")],
          }),
        );
        expect(error).toMatchObject({
          code: "BACKTRACE_EXISTS",
          details: { id: "a", from: 1 },
        });
        const stacks = await database.read("stacks", () =>
          rows(sql`SELECT hash, stack FROM holdfast_execution_stack`),
        );
        expect(stacks).toEqual([{ hash: "same", stack: "at same" }]);
        expect(await read(database, "last")).toMatchObject({ from: 1 });
      }),
    );

    test(
      "a range is not empty, and a stack has at most 64 KiB",
      onDatabase(async (database) => {
        await create(database, "a");
        const refused = (given: BacktraceRange) =>
          rejection(
            database.write(appendBacktraces, { id: id("a"), ranges: [given] }),
          );
        for (const given of [range(2, 2, "h"), range(-1, 2, "h")])
          expect(await refused(given)).toMatchObject({
            code: "OPTION_INVALID",
          });
        expect(
          await refused({ ...range(0, 1, "h"), stack: "x".repeat(65_537) }),
        ).toMatchObject({ code: "VALUE_TOO_LARGE" });
      }),
    );
  });
}
