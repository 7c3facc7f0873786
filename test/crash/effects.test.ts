import { expect, test } from "vitest";
import { effects } from "../../src/effects.ts";
import { createSession } from "../conformance/lease/leased-sessions.ts";
import { withFolder } from "../sqlite/place.ts";
import { executeWithAnother, relieved } from "./effect-pair.ts";

test("of two processes that execute one effect one runs it and the other returns its value; when the first is killed midway, the second runs it at once", () =>
  withFolder(async (folder) => {
    const database = await folder.open();
    await createSession(database, "s");
    // Nothing is done about the lease: only the death can end the waits.
    const store = effects(database);
    expect(await executeWithAnother(folder.file(), store, async () => undefined)).toEqual(relieved);
  }));
