import { describe, expect, test } from "vitest";
import { workflow } from "../../src/index.ts";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { withFolder, type Folder } from "../sqlite/place.ts";
import { holdfastCli, type HostOptions, type Ran } from "./host.ts";

type Command = (args: string, options?: HostOptions) => Promise<Ran>;

/** Three open runs of orders, and one of mails. */
function withRuns(body: (command: Command) => Promise<void>): Promise<void> {
  return withFolder(async (folder: Folder) => {
    const holdfast = await holdfastOn(await folder.open({}, {}, "app.db"));
    for (const [id, name] of [
      ["a", "orders/fulfil"],
      ["b", "orders/fulfil"],
      ["c", "orders/refund"],
      ["m", "mails/send"],
    ] as const)
      await holdfast.executions.create({ id, function: name, input: id });
    await holdfast.close();
    await body((args, options) =>
      holdfastCli([...args.split(" "), "--db", folder.file("app.db")], options),
    );
  });
}

describe("holdfast bulk", () => {
  test("that is stopped says that nothing was changed, and ends with 143", () =>
    withRuns(async (command) => {
      const stopped = await command("bulk cancel --all --yes", {
        stoppedBy: "SIGTERM",
      });
      expect(stopped).toMatchObject({
        code: 143,
        stdout: "",
        stderr: "Stopped. Nothing was changed.\n",
      });
    }));

  test("counts first, asks, and does nothing without a yes", () =>
    withRuns(async (command) => {
      const asked = await command("bulk cancel --function orders/*", {
        typed: "n",
      });
      expect(asked).toMatchObject({ code: 4, stdout: "" });
      expect(asked.stderr).toBe("cancel 3 runs? [y/N] Nothing was changed.\n");
      const counted = await command("bulk cancel --all --dry-run --json");
      expect(counted.json()).toEqual({ matched: 4 });
      const one = await command("bulk cancel --id-prefix m --dry-run");
      expect(one.stdout).toBe("cancel: 1 run matches.\n");
      const all = await command("bulk cancel --all --dry-run");
      expect(all.stdout).toBe("cancel: 4 runs match.\n");
      const unasked = await command("bulk cancel --all");
      expect(unasked).toMatchObject({ code: 2, stdout: "" });
      expect(unasked.stderr).toContain(
        "Not a terminal, so nothing was changed. Add --yes to confirm.",
      );
      const done = await command("bulk cancel --function orders/*", {
        typed: "yes",
      });
      expect(done).toMatchObject({ code: 0, stdout: "cancel: 3 runs.\n" });
      const left = (await command("list --open --json")).json();
      expect(left).toMatchObject({ items: [{ id: "m" }] });
    }));

  test("reports as JSON, and names with an exit code what it could not do", () =>
    withRuns(async (command) => {
      const paused = await command("bulk pause --id-prefix a --yes --json");
      expect(paused.json()).toEqual({
        matched: 1,
        changed: 1,
        unchanged: 0,
        failed: 0,
        failures: [],
      });
      expect((await command("bulk resume --all --yes")).stdout).toBe("resume: 1 run.\n");
      const none = await command("bulk resume --all --yes --json");
      expect(none.json()).toMatchObject({ matched: 0, changed: 0, failed: 0 });
      await command("bulk cancel --id-prefix m --reason enough --yes");
      const erased = await command("bulk erase --all --yes");
      expect(erased).toMatchObject({ code: 0, stdout: "erase: 1 run.\n" });
    }));

  test("copies what has failed, once, and lets what is parked be tried again", () =>
    withFolder(async (folder) => {
      const holdfast = await holdfastOn(await folder.open({}, {}, "app.db"));
      const { executions } = holdfast;
      const parked = {
        kind: "parked",
        code: "NONDETERMINISM",
        reason: "another call",
        codeVersion: null,
      } as const;
      for (const id of ["p", "q"]) {
        await executions.create({ id, function: "f" });
        await executions.append(id, 1, [parked]);
      }
      const failing = workflow("failing", async () => {
        throw new Error("no");
      });
      await holdfast.work([failing]);
      const failed = await holdfast.start(failing, undefined, { id: "x" });
      await expect(failed.result()).rejects.toThrow("no");
      await holdfast.close();
      const command: Command = (args, options) =>
        holdfastCli([...args.split(" "), "--db", folder.file("app.db")], options);
      expect(await command("bulk unpark --all --yes")).toMatchObject({
        code: 0,
        stdout: "unpark: 2 runs.\n",
        stderr: "2 of 2 …\n",
      });
      const retry = "bulk retry --function failing --yes --json";
      expect((await command(retry)).json()).toMatchObject({ changed: 1 });
      expect((await command(retry)).json()).toMatchObject({ changed: 0 });
      const { items } = (await command("list --id-prefix retry: --json")).json() as {
        readonly items: readonly { readonly id: string }[];
      };
      expect(items.map(({ id }) => id)).toEqual(["retry:x"]);
    }));

  test.each([
    ["bulk cancel", "No runs were chosen. "],
    ["bulk cancel --yes", "No runs were chosen. "],
    ["bulk", "Missing required argument 'action'"],
    ["bulk kill --all", "Allowed choices are cancel, pause, resume, unpark"],
    ["bulk pause --all --force", "--force and --reason are only for cancel"],
    ["bulk pause --all --reason=", "--force and --reason are only for cancel"],
    ["bulk resume --status running --yes", "applies only to paused runs, so it takes no --status"],
    [
      "bulk retry --status failed --yes",
      "applies only to failed top-level runs, so it takes no --status",
    ],
    [
      "bulk retry --top-level --yes",
      "applies only to failed top-level runs, so it takes no --top-level",
    ],
    ["bulk erase --open --yes", "applies only to finished top-level runs, so it takes no --open"],
    ["bulk cancel --status gone", "Allowed choices are"],
    ["bulk cancel --since soon", "It must be a date"],
    ["bulk cancel --frobnicate", "Unknown option '--frobnicate'"],
  ])("%s is refused", (args, said) =>
    withRuns(async (command) => {
      const refused = await command(args);
      expect(refused).toMatchObject({ code: 2, stdout: "" });
      expect(refused.stderr).toContain(said);
      const { items } = (await command("list --json")).json() as {
        readonly items: readonly { readonly status: string }[];
      };
      expect(items.map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => "pending"));
    }),
  );
});

describe("holdfast erase", () => {
  test("removes what a run held once it has ended, or by force", () =>
    withRuns(async (command) => {
      const open = await command("erase a --yes");
      expect(open).toMatchObject({ code: 4, stdout: "" });
      expect(open.stderr).toMatch(
        /^EXECUTION_UNFINISHED: .*Nothing was removed\. To end it first, without running its code: npx holdfast erase a --force --db \S+/,
      );
      const unasked = await command("erase a", { typed: "y" });
      expect(unasked.stderr).toMatch(/^EXECUTION_UNFINISHED: /);
      const asked = await command("erase a --force", { typed: "" });
      expect(asked.stderr).toContain("Nothing was erased.");
      const erased = await command("erase a --force --yes --json");
      expect(erased.json()).toMatchObject({ id: "a" });
      for (const gone of ["erase a --yes", "show a", "logs a", "cancel a"])
        expect(await command(gone)).toMatchObject({
          code: 3,
          stderr: expect.stringMatching(
            /^EXECUTION_NOT_FOUND: Run a was erased at 20\S+Z/,
          ) as string,
        });
      expect(await command("erase nobody --yes")).toMatchObject({ code: 3 });
      expect(await command("erase .. --yes")).toMatchObject({ code: 2 });
      const alone = await command("erase b --force");
      expect(alone.stderr).toContain("nothing was changed. Add --yes to confirm.");
    }));
});
