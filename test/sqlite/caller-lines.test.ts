import { expect, test } from "vitest";
import { rejection } from "../conformance/backend.ts";
import { addNote, createNoteTable } from "../conformance/notes.ts";
import { unhurried, withFolder } from "./place.ts";

test("a failing flush gives each of the calls that it ends an error of its own, with the caller's line", () =>
  withFolder(async (folder) => {
    // The log is made sound by one flush, the tables are flushed by another.
    const database = await folder.open(
      { limits: unhurried },
      { flush: { place: "thread", faults: { failAfter: 2 } } },
    );
    await database.write("tables", createNoteTable);
    async function firstCaller(): Promise<void> {
      await database.write(addNote, { id: "a" });
    }
    async function secondCaller(): Promise<void> {
      await database.write(addNote, { id: "b" });
    }
    const [first, second] = await Promise.all([
      rejection(firstCaller()),
      rejection(secondCaller()),
    ]);
    for (const error of [first, second]) expect(error).toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(first.stack).toMatch(/firstCaller.*caller-lines\.test\.ts/);
    expect(first.stack).not.toContain("secondCaller");
    expect(second.stack).toMatch(/secondCaller.*caller-lines\.test\.ts/);
    expect(second.stack).not.toContain("firstCaller");
    expect(second.cause).toBe(first.cause);
    const stopped = await rejection(secondCaller());
    expect(stopped).toMatchObject({ code: "WRITES_STOPPED" });
    expect(stopped.stack).toMatch(/secondCaller.*caller-lines\.test\.ts/);
  }));
