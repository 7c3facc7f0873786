import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { exitCodes } from "../../src/cli/exit-codes.ts";
import { openHoldfast } from "../../src/index.ts";
import { byAnn } from "../conformance/execution/fixture.ts";
import { keyedCodec } from "../fixtures/keyed-codec.ts";
import { withFolder, type Folder } from "../sqlite/place.ts";
import { holdfastCli } from "./host.ts";

/** A file with a run that has ended, one that is due and one that is parked, all encrypted. */
async function withSealedRuns(folder: Folder): Promise<readonly string[]> {
  const holdfast = await openHoldfast(folder.file(), { payload: keyedCodec("one") });
  const { executions } = holdfast;
  for (const id of ["ended", "due", "other"])
    await executions.create({ id, function: "f", input: "secret" });
  await executions.signal("due", "go", "secret word");
  await executions.setProgress("due", "secret progress");
  const { locked } = await executions.lockPending({
    ...byAnn,
    lease: "1 minute",
    functions: ["f"],
    limit: 3,
  });
  for (const { id, nextVersion } of locked)
    await executions.append(id, nextVersion, [
      id === "ended"
        ? { kind: "finished", result: { kind: "completed", value: "secret result" } }
        : id === "due"
          ? { kind: "unlocked", dueAt: 0, reason: "workerClosed" }
          : { kind: "parked", code: "X", reason: "broken", codeVersion: null },
    ] as never);
  await holdfast.close();
  return ["--db", folder.file()];
}

describe("an encrypted database without its codec", () => {
  test("is listed, shown, checked, backed up and looked after, with its values as sealed", () =>
    withFolder(async (folder) => {
      const args = await withSealedRuns(folder);
      const shown = await holdfastCli(["show", "ended", ...args]);
      expect(shown.code).toBe(0);
      expect(shown.stdout).toContain('input     "sealed"');
      expect(shown.stdout).toContain('result    "sealed"');
      expect(shown.stderr).toContain('payload codec "keyed one"');
      const due = await holdfastCli(["show", "due", "--json", ...args]);
      expect(due.json()).toMatchObject({
        input: "sealed",
        run: { progress: "sealed" },
        signals: [{ signal: "go", value: "sealed" }],
        damaged: [],
      });
      for (const command of ["list", "stats", "check", "doctor"]) {
        const { code, stdout, stderr } = await holdfastCli([command, ...args]);
        expect({ command, code, stderr }).toMatchObject({ command, stderr: "" });
        expect(stdout).not.toContain("secret");
        expect(code).toBe(command === "doctor" ? exitCodes.findings : exitCodes.ok);
      }
      const checked = await holdfastCli(["check", "--json", ...args]);
      expect(checked.json()).toMatchObject({ isSound: true, isSealed: true, damaged: [] });
      const backup = await holdfastCli(["backup", "copy.db", ...args], { cwd: folder.path });
      expect(backup.code).toBe(0);
      const copy = await holdfastCli(["list", "--json", "--db", folder.file("copy.db")]);
      expect((copy.json() as { items: unknown[] }).items).toHaveLength(3);
    }));

  test("is shown and checked with a wrong key too, which the output names", () =>
    withFolder(async (folder) => {
      const args = await withSealedRuns(folder);
      const codec = new URL("../fixtures/keyed-codec.ts", import.meta.url).href;
      writeFileSync(
        folder.file("wrong.mjs"),
        `import { keyedCodec } from ${JSON.stringify(codec)};
         export const options = { payload: keyedCodec("two") };`,
      );
      const wrong = [...args, "--config", folder.file("wrong.mjs")];
      const named = 'The payload codec "keyed two" cannot read the first value that "keyed one"';
      const shown = await holdfastCli(["show", "ended", ...wrong]);
      expect(shown.stdout).toContain('result    "sealed"');
      expect(shown.stderr).toContain(named);
      const checked = await holdfastCli(["check", ...wrong]);
      expect(checked.code).toBe(exitCodes.ok);
      expect(checked.stdout).toContain(`Values are sealed and were not read. ${named}`);
    }));

  test("takes commands that touch no value, and refuses those that do", () =>
    withFolder(async (folder) => {
      const args = await withSealedRuns(folder);
      for (const command of [
        ["pause", "due"],
        ["resume", "due"],
        ["unpark", "other"],
        ["cancel", "other", "--reason", "not needed"],
      ])
        expect(await holdfastCli([...command, ...args])).toMatchObject({ code: 0 });
      for (const command of [
        ["signal", "due", "go", "--value", "1"],
        ["export", "ended"],
      ]) {
        const { code, stderr } = await holdfastCli([...command, ...args]);
        expect(code).not.toBe(0);
        expect(stderr).toMatch(/^PAYLOAD_CODEC_MISSING: /);
      }
      writeFileSync(
        folder.file("work.mjs"),
        `import { workflow } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
         export const f = workflow("f", async () => 1);`,
      );
      const work = await holdfastCli(["work", "./work.mjs", ...args], { cwd: folder.path });
      expect(work.code).not.toBe(0);
      expect(work.stderr).toContain("PAYLOAD_CODEC_MISSING");
    }));
});
