import { describe, expect, test } from "vitest";
import {
  runStoredMax,
  type StreamPart,
  type StreamWrite,
  type StreamWritten,
} from "../../../src/model/execution/stream.ts";
import type { Encoded } from "../../../src/model/values/encoded.ts";
import type { Database } from "../../../src/sql/database.ts";
import { rows, run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { storeContext } from "../../../src/stores/context.ts";
import { maintenance } from "../../../src/stores/maintenance/maintenance.ts";
import { readStreams } from "../../../src/stores/stream/read.ts";
import { removeStreamSlice } from "../../../src/stores/stream/sweep.ts";
import { writeStream } from "../../../src/stores/stream/write.ts";
import type { Backend } from "../backend.ts";
import {
  ann,
  bob,
  byAnn,
  byBob,
  onExecutions,
  type ExecutionFixture,
} from "../execution/fixture.ts";

/** One part of one chunk, of a step that is its first call. */
function part(value: string, given: Partial<StreamPart> = {}): StreamPart {
  const payload = JSON.stringify([value]) as Encoded;
  return {
    continuation: 0,
    call: 1,
    step: "s",
    attempt: 1,
    isFirst: true,
    chunks: 1,
    size: payload.length,
    at: 0,
    payload,
    ...given,
  };
}

/** A run that ann has locked, and writes of its output. */
async function lockedRun({ store, database }: ExecutionFixture, id = "r") {
  const { locked } = await store.createLocked({ id, function: "f", input: null }, byAnn);
  if (locked === undefined) throw new Error("It is locked.");
  const write = (
    parts: readonly StreamPart[],
    given: Partial<StreamWrite> = {},
  ): Promise<StreamWritten> =>
    database.write(writeStream(storeContext(database, undefined)), {
      execution: locked.key,
      id: locked.id,
      fence: ann,
      lockVersion: 1,
      after: 0,
      lost: 0,
      parts,
      dropped: 0,
      folded: [],
      ...given,
    });
  return { execution: locked.key, nextVersion: locked.nextVersion, write };
}

interface StoredRow {
  readonly position: number;
  readonly state: string;
  readonly supersedes: number;
}

function stored(database: Database, execution: number): Promise<readonly StoredRow[]> {
  return database.read("stored parts", () =>
    rows<StoredRow>(sql`
      SELECT position, state, supersedes FROM holdfast_stream_part WHERE execution = ${execution} ORDER BY position`),
  );
}

/** What is kept of live output, and of whom. */
export function storedOutputSuite(backend: Backend): void {
  describe("live output in the database", () => {
    fenceTests(backend);
    boundTests(backend);
    lossTests(backend);
    faultTests(backend);
  });
}

function fenceTests(backend: Backend): void {
  test(
    "[RN6] of a worker without the lock is dropped, and the next owner supersedes what it wrote",
    onExecutions(backend, async (fixture) => {
      const { store, database } = fixture;
      const { execution, nextVersion, write } = await lockedRun(fixture);
      expect(await write([part("a")])).toEqual({ position: 1, isFull: false });
      expect(await write([part("x")], { fence: bob })).toEqual({ position: null, isFull: false });
      await store.unlock("r", nextVersion, { holder: ann, reason: "test" });
      await store.lock("r", nextVersion + 1, byBob);
      expect((await write([part("late")])).position).toBeNull();
      const lockVersion = nextVersion + 1;
      expect((await write([part("b")], { fence: bob, lockVersion })).position).toBe(2);
      expect((await write([part("late")])).position).toBeNull();
      expect(await stored(database, execution)).toEqual([
        { position: 1, state: "superseded", supersedes: 0 },
        { position: 2, state: "live", supersedes: 1 },
      ]);
      await store.unlock("r", nextVersion + 2, { holder: bob, reason: "test" });
      expect((await write([part("c")], { fence: bob })).position).toBeNull();
      await store.cancel("r", { force: true });
      expect((await write([part("d")], { fence: bob })).position).toBeNull();
      expect(await stored(database, execution)).toHaveLength(2);
    }),
  );

  test(
    "[RN6] changes neither the row nor the version of its run, and an unlocked run has none",
    onExecutions(backend, async (fixture) => {
      const { store, database } = fixture;
      const { execution, write } = await lockedRun(fixture);
      const before = await store.get("r");
      await write([part("a")]);
      expect(await store.get("r")).toEqual(before);
      const other = await store.create({ id: "other", function: "f", input: null });
      const context = storeContext(database, undefined);
      const input = {
        execution: other.key,
        id: other.id,
        fence: ann,
        lockVersion: 1,
        after: 0,
        lost: 0,
      };
      const written = await database.write(writeStream(context), {
        ...input,
        parts: [part("x")],
        dropped: 0,
        folded: [],
      });
      expect(written.position).toBeNull();
      const places = [other.key, execution].map((key) => ({
        execution: key,
        runVersion: 0,
        position: 0,
      }));
      const page = await database.read(readStreams(context), places);
      expect(page.newest.map(({ id }) => id)).toEqual(["r"]);
    }),
  );
}

function boundTests(backend: Backend): void {
  test(
    "[RN6] above 8 MiB loses superseded parts first, then folded ones, then new ones until the step ends",
    onExecutions(backend, async (fixture) => {
      const { database } = fixture;
      const { execution, write } = await lockedRun(fixture);
      const megabyte = "x".repeat(1_000_000);
      const big = (call: number, given: Partial<StreamPart> = {}): StreamPart =>
        part(megabyte, { call, ...given });
      await write([big(1)]);
      await write([big(2)]);
      await write([big(2, { attempt: 2 })]);
      for (let n = 0; n < 4; n += 1) await write([big(3, { isFirst: n === 0 })]);
      const positions = async (): Promise<readonly number[]> =>
        (await stored(database, execution)).map(({ position }) => position);
      await write([], { folded: [{ continuation: 0, call: 1, upTo: 1 }] });
      expect(await positions()).toEqual([1, 2, 3, 4, 5, 6, 7]);
      expect(await write([big(3, { isFirst: false })])).toEqual({ position: 8, isFull: false });
      // The ninth does not fit: the superseded part goes, and then the folded one.
      expect(await write([big(3, { isFirst: false })])).toEqual({ position: 9, isFull: false });
      expect(await positions()).toEqual([3, 4, 5, 6, 7, 8, 9]);
      expect(await write([big(3, { isFirst: false })])).toEqual({ position: 10, isFull: false });
      expect(await write([big(3, { isFirst: false })])).toEqual({ position: 11, isFull: true });
      expect(await positions()).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
      await write([], { folded: [{ continuation: 0, call: 3, upTo: 11 }] });
      expect(await write([big(4)])).toEqual({ position: 12, isFull: false });
      const [head] = await database.read("head", () =>
        rows<{ size: number }>(
          sql`SELECT size FROM holdfast_stream WHERE execution = ${execution}`,
        ),
      );
      expect(head?.size).toBeLessThanOrEqual(runStoredMax);
      expect((await maintenance(database).check()).damaged).toEqual([]);
    }),
  );

  test(
    "[RN6] that is removed in slices is whole between them",
    onExecutions(backend, async (fixture) => {
      const { database } = fixture;
      const { execution, write } = await lockedRun(fixture);
      for (const value of ["a", "bb", "ccc"]) await write([part(value, { isFirst: false })]);
      const context = storeContext(database, undefined);
      const remove = (): Promise<number> =>
        database.write(removeStreamSlice(context), { execution, rowsMax: 1 });
      for (const left of [2, 1, 0]) {
        expect(await remove()).toBe(1);
        expect(await stored(database, execution)).toHaveLength(left);
        expect((await maintenance(database).check()).damaged).toEqual([]);
      }
      expect(await remove()).toBe(1);
      expect(await remove()).toBe(0);
    }),
  );
}

function lossTests(backend: Backend): void {
  test(
    "[RN6] that a power cut took away is not numbered again by a living worker, and is read anew of the next",
    onExecutions(backend, async (fixture) => {
      const { store, database } = fixture;
      const { execution, nextVersion, write } = await lockedRun(fixture);
      await write([part("a")]);
      await write([part("b", { isFirst: false })]);
      const context = storeContext(database, undefined);
      const lose = (): Promise<unknown> =>
        database.write("lose", function* () {
          yield* run(
            sql`DELETE FROM holdfast_stream_part WHERE execution = ${execution} AND position > 1`,
          );
          yield* run(
            sql`UPDATE holdfast_stream SET position = 1, size = 5 WHERE execution = ${execution}`,
          );
        });
      await lose();
      expect((await write([part("c")], { after: 2 })).position).toBe(3);
      await lose();
      await store.unlock("r", nextVersion, { holder: ann, reason: "test" });
      await store.lock("r", nextVersion + 1, byBob);
      expect((await write([part("d")], { fence: bob })).position).toBe(2);
      const reader = { execution, runVersion: 1, position: 3 };
      const { parts } = await database.read(readStreams(context), [reader]);
      expect(parts.map(({ position, payload }) => [position, payload])).toEqual([[2, '["d"]']]);
    }),
  );
}

function faultTests(backend: Backend): void {
  test(
    "[RN6] that was damaged is found by a check",
    onExecutions(backend, async (fixture) => {
      const { database } = fixture;
      const first = await lockedRun(fixture, "one");
      const second = await lockedRun(fixture, "two");
      await first.write([part("a")]);
      await second.write([part("a")]);
      await database.write("damage", function* () {
        yield* run(
          sql`UPDATE holdfast_stream_part SET chunks = 2 WHERE execution = ${first.execution}`,
        );
        yield* run(sql`DELETE FROM holdfast_stream WHERE execution = ${second.execution}`);
      });
      const { damaged } = await maintenance(database).check();
      expect(damaged.map(({ table, reason }) => [table, reason])).toEqual([
        ["holdfast_stream", "A part of it lies behind its newest chunk."],
        ["holdfast_stream_part", "It has another number of chunks than it says."],
        ["holdfast_stream_part", "Its run has no output."],
      ]);
    }),
  );
}
