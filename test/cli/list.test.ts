import { expect, test } from "vitest";
import { newExecution, createMany, finish } from "../conformance/execution/records.ts";
import { withFolder } from "../sqlite/place.ts";
import { holdfastCli } from "./host.ts";

test("list says how many runs it searched when none of them matches and there are more", () =>
  withFolder(async (folder) => {
    const database = await folder.open({}, {}, "app.db");
    const runs = Array.from({ length: 10_001 }, (_, n) =>
      newExecution(`run-${n}`, { at: n, function: "bulk" }),
    );
    await createMany(database, runs);
    await finish(database, "run-0", 90_000, { kind: "cancelled" });
    await database.close();
    const list = (...args: readonly string[]) =>
      holdfastCli(["list", ...args, "--db", folder.file("app.db")]);
    const cancelled = ["--function", "bulk", "--status", "cancelled"];
    const none = await list(...cancelled);
    expect(none).toMatchObject({ code: 0, stdout: "" });
    expect(none.stderr).toMatch(/^Searched 10,000 runs, no match\.\nMore runs: --after \S+\n$/);
    const { next, ...rest } = (await list(...cancelled, "--json")).json() as { next: string };
    expect(rest).toEqual({ items: [], looked: 10_000, damaged: [] });
    expect((await list(...cancelled, "--after", next)).stdout).toContain("run-0");
    expect((await list("--function", "bulk", "--status", "completed", "--after", next)).code).toBe(
      2,
    );
    expect((await list("--function", "other")).stderr).toBe("No runs.\n");
  }));
