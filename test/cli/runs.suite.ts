import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { activity, schedule, signal, workflow, type Holdfast } from "../../src/index.ts";
import { byAnn } from "../conformance/execution/fixture.ts";
import { runCli } from "../../src/cli/program.ts";
import { holdfastCli, hostOf, type HostOptions, type Ran } from "./host.ts";
import { timeoutMs } from "../depth.ts";

/** A database of an app: how the app opens it, and how the command names it. */
export interface CliPlace {
  open(): Promise<Holdfast>;
  readonly args: readonly string[];
  dispose(): Promise<void>;
}

const approval = signal<{ ok: boolean }>("approval");

const charge = activity(
  "billing/charge",
  { retry: { maxRetries: 0 } },
  async (ctx, cents: number) => {
    ctx.log.info("charging", { cents });
    if (cents < 0) throw new RangeError("negative amount");
    return { receipt: cents };
  },
);

const fulfil = workflow("orders/fulfil", async (ctx, cents: number) => {
  ctx.log.warn("\u001B[2Jbegun");
  const paid = await ctx.call(charge, cents);
  await ctx.step("print label", () => "a label");
  const reply = await ctx.receive(approval);
  return { ...paid, ok: reply.ok, at: new Date(0) };
});

const nap = workflow("nap", async (ctx) => ctx.sleep("3 days"));

const ask = workflow("ask", async (ctx) => {
  const answer = ctx.external<number>({
    about: { question: "how\u001B[2J many?" },
    schema: { type: "integer" },
    tags: ["counts"],
    timeout: "1 day",
  });
  ctx.setProgress({ token: answer.token });
  return answer.result();
});

const functions = [fulfil, charge, nap, ask] as const;

/** What commands say and do, on either database. */
export function describeRuns(name: string, makePlace: () => Promise<CliPlace>): void {
  describe(`the command line on ${name}`, () => {
    let place: CliPlace;
    let holdfast: Holdfast;
    const run = (args: readonly string[], options?: HostOptions): Promise<Ran> =>
      holdfastCli([...args, ...place.args], options);
    const json = async (...args: readonly string[]): Promise<unknown> => {
      const ran = await run([...args, "--json"]);
      expect(ran.stderr).toBe("");
      expect(ran.code).toBe(0);
      return ran.json();
    };
    const until = (id: string, status: string): Promise<void> =>
      vi.waitFor(async () => expect((await holdfast.executions.get(id)).status).toBe(status), {
        timeout: timeoutMs,
        interval: 10,
      });

    beforeAll(async () => {
      place = await makePlace();
      holdfast = await place.open();
      await holdfast.work(functions);
      await holdfast.start(fulfil, 500, { id: "order-1", tags: ["demo"] });
      await holdfast.start(fulfil, -5, { id: "order-2" });
      await holdfast.start(nap, undefined, { id: "nap-1" });
      await holdfast.start(ask, undefined, { id: "ask-1" });
      await holdfast.executions.create({ id: "lost-1", function: "lost" });
      await until("order-2", "failed");
      for (const id of ["order-1", "nap-1", "ask-1"]) await until(id, "blocked");
    });

    afterAll(async () => {
      await holdfast.close();
      await place.dispose();
    });

    test("list shows runs newest first, in pages, and by what they are like", async () => {
      const ids = async (...args: readonly string[]): Promise<unknown> =>
        ((await json("list", ...args)) as { items: { id: string }[] }).items
          .map(({ id }) => id)
          .toSorted();
      expect(await ids("--top-level")).toEqual(["ask-1", "lost-1", "nap-1", "order-1", "order-2"]);
      expect(await ids("--status", "failed")).toEqual(["order-2", "order-2.o:1_1"]);
      expect(await ids("--tag", "demo")).toEqual(["order-1"]);
      expect(await ids("--function", "orders/*")).toEqual(["order-1", "order-2"]);
      expect(await ids("--function", "nap")).toEqual(["nap-1"]);
      expect(await ids("--parent", "ask-1")).toEqual(["ask-1.o:1_1"]);
      expect(await ids("--since", "1h", "--id-prefix", "nap")).toEqual(["nap-1"]);
      expect(await ids("--until", "2020-01-01")).toEqual([]);
      const first = (await json("list", "--limit", "1")) as { next: string };
      const second = (await json("list", "--limit", "1", "--after", first.next)) as {
        items: unknown[];
      };
      expect(second.items).toHaveLength(1);
      const table = await run(["list", "--function", "nap"]);
      expect(table.stdout).toMatch(
        /^ID +FUNCTION +STATUS +CREATED\nnap-1 +nap +blocked +(\S+ min )?\S+ (ms|s|min) ago +sleeps until \S+ \d\d:\d\d\n$/,
      );
    });

    test("stats counts them", async () => {
      expect(await json("stats")).toMatchObject({
        total: 8,
        unreadable: 0,
        counts: expect.arrayContaining([
          { function: "billing/charge", status: "failed", count: 1 },
          { function: "nap", status: "blocked", count: 1 },
        ]),
      });
      expect((await run(["stats"])).stdout).toMatch(/^FUNCTION +BLOCKED +COMPLETED/);
    });

    test("[RN14] list says what runs wait for and who is unserved, and keeps that when ids are long", async () => {
      const id = `long-${"x".repeat(100)}`;
      await holdfast.start(ask, undefined, { id });
      await until(id, "blocked");
      const { stdout } = await run(["list", "--id-prefix", id, "--top-level"], {
        isTerminal: true,
        columns: 80,
        env: { NO_COLOR: "1" },
      });
      expect(stdout).toMatch(
        new RegExp(
          `^ID\n  FUNCTION +STATUS +CREATED *\n${id}\n  ask +blocked +\\S+ \\S+ ago +has waited`,
        ),
      );
      await holdfast.runs.cancelAll({ idPrefix: id });
      await vi.waitFor(
        async () =>
          expect(await json("list", "--function", "lost")).toMatchObject({
            items: [{ id: "lost-1", status: "unserved", waits: [] }],
          }),
        { timeout: timeoutMs, interval: 100 },
      );
      expect((await run(["list", "--function", "lost"])).stdout).toMatch(
        /unserved .*no worker serves/,
      );
      expect(await json("list", "--function", "orders/*", "--status", "blocked")).toMatchObject({
        items: [{ id: "order-1", waits: [{ kind: "signal", signal: "approval" }] }],
      });
    });

    test("[RN14] failures groups failed runs by function and error, without those that passed it on", async () => {
      const { items, isCut } = (await json("failures", "--function", "billing/charge")) as {
        items: { function: string; count: number; example: string }[];
        isCut: boolean;
      };
      expect(isCut).toBe(false);
      expect(items).toMatchObject([
        {
          function: "billing/charge",
          error: { name: "RangeError", message: "negative amount" },
          count: 1,
          example: "order-2.o:1_1",
        },
      ]);
      expect(
        ((await json("failures", "--function", "orders/fulfil")) as { items: [] }).items,
      ).toEqual([]);
      const { stdout, stderr } = await run(["failures", "--function", "billing/charge"]);
      expect(stdout).toMatch(
        /^1 × billing\/charge, .* ago\n  RangeError: negative amount\n  → npx holdfast show order-2\.o:1_1/,
      );
      expect(stderr).toBe("");
      expect((await run(["failures", "--function", "none"])).stderr).toBe("No failed runs.\n");
      for (const wrong of [
        ["--limit", "x"],
        ["--since", "soon"],
      ])
        expect((await run(["failures", ...wrong])).code).toBe(2);
    });

    test("[RN14] show says why attempts failed, hides results unless asked, and has no line that only says waits", async () => {
      const failed = (await run(["show", "order-2"])).stdout;
      expect(failed).toMatch(
        /called billing\/charge \(\S+, took .*, failed: RangeError: negative amount\n/,
      );
      expect(failed).toMatch(/\nbilling\/charge .*, failed\n/);
      const plain = (await run(["show", "order-1"])).stdout;
      expect(plain).toContain('step "print label" completed\n');
      expect(plain).not.toMatch(/ waits\n/);
      const valued = (await run(["show", "order-1", "--values"])).stdout;
      expect(valued).toContain('step "print label" completed: "a label"\n');
      expect(valued).toMatch(/called billing\/charge .*took [^:]*: \{"receipt":500\}\n/);
    });

    test("[RN14] show draws a run whose code is running, and fits a terminal of 40 columns", async () => {
      const { executions } = holdfast;
      await executions.createLocked(
        { id: "busy-1", function: "elsewhere" },
        { ...byAnn, lease: "1 hour" },
      );
      await new Promise((resolve) => setTimeout(resolve, 30));
      const { stdout } = await run(["show", "busy-1"], {
        isTerminal: true,
        columns: 40,
        env: { NO_COLOR: "1" },
      });
      expect(stdout).toMatch(/\nrunning {2}=+> {2}\d+/);
      expect(stdout).toMatch(/\nLog from \d{4}-\d\d-\d\d\n.*\n0 .*\d\d:\d\d:\d\d\.\d{3} .*created/);
      expect(await json("show", "busy-1")).toMatchObject({
        runningSince: expect.any(Number) as number,
      });
      await executions.cancel("busy-1", { force: true });
      expect(await json("show", "busy-1")).toMatchObject({ runningSince: null });
    });

    test.each([
      [
        "order-1",
        /has waited \d[^\n]* for signal approval\n/,
        "→ npx holdfast signal order-1 approval --value",
      ],
      ["nap-1", "sleeps until ", "sleeps for 3 days"],
      [
        "ask-1",
        /has waited \d[^\n]* for an answer from outside \(ask-1\.o:1_1\)/,
        "→ npx holdfast answer ask-1.o:1_1 '…'",
        'Questions\nask-1.o:1_1  {"question":"how\\u001b[2J many?"}\n  answer: {"type":"integer"}',
      ],
      ["order-2", /failed (today|yesterday)/, "RangeError: negative amount"],
      ["order-2", "→ npx holdfast retry order-2", "called billing/charge (order-2.o:1_1), took"],
    ])("show %s says in words: %s", async (id, ...said) => {
      const { code, stdout } = await run(["show", id]);
      expect(code).toBe(0);
      for (const words of said)
        if (typeof words === "string") expect(stdout).toContain(words);
        else expect(stdout).toMatch(words);
    });

    test("[RN1] show draws a timeline of a run that took its time, and gives its bars as data", async () => {
      const { stdout } = await run(["show", "nap-1"]);
      expect(stdout).toMatch(
        /\n\nTimeline of \d[^\n]*\nsleep {2}-+> {2}[\d.]+ \S+ so far\n\nLog\n/,
      );
      expect((await run(["show", "lost-1"])).stdout).not.toContain("Timeline");
      expect(await json("show", "lost-1")).toMatchObject({ spans: [] });
      expect(await json("show", "nap-1")).toMatchObject({
        spans: [{ kind: "sleep", call: 1, ended: null, outcome: null }],
      });
      expect(await json("show", "order-1")).toMatchObject({
        spans: [
          { kind: "child", name: "billing/charge", child: "order-1.o:1_1", outcome: "completed" },
          { kind: "step", name: "print label", outcome: "completed", attempts: [{ attempt: 1 }] },
          { kind: "receive", name: "approval", ended: null, outcome: null },
        ],
      });
      expect(await json("show", "order-2.o:1_1")).toMatchObject({
        spans: [{ kind: "attempt", attempt: 1, outcome: "failed" }],
      });
    });

    test("a terminal that says it has no columns is taken for a usual one", async () => {
      const { stdout } = await run(["list"], { isTerminal: true, columns: 0 });
      expect(stdout).toContain("order-1");
    });

    test("start that waits says that nobody runs a function, however short it waits", async () => {
      const start = ["start", "lost", "--wait", "--timeout", "100ms"];
      const { code, stderr } = await run(start);
      expect(code).toBe(7);
      expect(stderr).toMatch(/^Started .*\nNo worker serves "lost" yet.*\nDEADLINE_EXCEEDED: /);
      const asJson = await run([...start, "--json"]);
      expect(JSON.parse(asJson.stderr)).toMatchObject({
        error: {
          code: "DEADLINE_EXCEEDED",
          details: { id: expect.stringMatching(/^E_/), isTaken: false },
        },
      });
    });

    test("start of an activity as a workflow says why it is parked, and the kind is not guessed from such a mistake", async () => {
      const start = ["start", "billing/charge", "--input", "5"];
      const { host, said, stop } = hostOf();
      const wrong = [...start, "--workflow", "--id", "charge-1", "--wait"];
      const waiting = runCli([...wrong, ...place.args], host);
      await vi.waitFor(
        () =>
          expect(said.stderr).toContain(
            "charge-1 is parked, and cannot end until it is unparked: Run charge-1 was started as a workflow, but billing/charge is an activity",
          ),
        { timeout: timeoutMs, interval: 10 },
      );
      stop("SIGINT");
      expect(await waiting).toBe(130);
      expect(await run(start)).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringMatching(
          /^OPTION_INVALID: .*Pass --workflow or --activity, or name the module/,
        ) as string,
      });
      expect(await run([...start, "--workflow", "--activity"])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("not both") as string,
      });
      const ran = await run([...start, "--activity", "--wait"]);
      expect(ran).toMatchObject({ code: 0 });
      expect(ran.json()).toEqual({ receipt: 5 });
      await holdfast.executions.cancel("charge-1", { force: true });
    });

    test("start that is stopped says which run goes on", async () => {
      const stopped = (...args: readonly string[]): Promise<Ran> =>
        run(["start", "lost", "--id", "lost-2", ...args], {
          stoppedBy: "SIGINT",
        });
      const waiting = await stopped("--wait");
      expect(waiting).toMatchObject({
        code: 130,
        stdout: "",
        stderr: "Started lost-2 of lost.\nStopped waiting. lost-2 continues.\n",
      });
      const asJson = await stopped("--wait", "--json");
      const told = { id: "lost-2", function: "lost", existed: true };
      expect(asJson.json()).toEqual({ stopped: told });
      const unknown = await stopped("--json");
      expect(unknown.json()).toEqual({ ...told, status: "pending" });
    });

    test("start refuses the id that a child of another run would get", async () => {
      const { code, stderr } = await run(["start", "nap", "--id", "a.o:1_1"]);
      expect(code).toBe(2);
      expect(stderr).toContain("ID_MALFORMED");
    });

    test("start says when the run was there already, and how it stands", async () => {
      const start = ["start", "nap", "--id", "nap-2"];
      expect(await json(...start)).toEqual({
        id: "nap-2",
        function: "nap",
        existed: false,
        isTaken: true,
      });
      await until("nap-2", "blocked");
      expect(await run(start)).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(
          /^nap-2 of nap was started before: waits until .*\.\n$/,
        ) as string,
      });
      expect(await json(...start)).toEqual({
        id: "nap-2",
        function: "nap",
        existed: true,
        status: "blocked",
        isTaken: true,
      });
      await holdfast.executions.cancel("nap-2", { force: true });
      expect((await run(start)).stdout).toMatch(
        /^nap-2 of nap was started before: cancelled (today|yesterday) .*\.\n$/,
      );
    });

    test("show says that nobody runs a function", async () => {
      await expect
        .poll(async () => (await run(["show", "lost-1"])).stdout, {
          timeout: timeoutMs,
          interval: 200,
        })
        .toContain("and no worker serves lost");
    });

    test("show gives programs the run, its log, what it waits for and its children", async () => {
      expect(await json("show", "order-1")).toMatchObject({
        run: { id: "order-1", function: "orders/fulfil", tags: ["demo"] },
        status: "blocked",
        waits: [{ kind: "signal", signal: "approval", until: null }],
        input: 500,
        children: [{ id: "order-1.o:1_1", status: "completed" }],
        events: expect.arrayContaining([expect.objectContaining({ version: 0 })]),
      });
      const { events } = (await json("show", "order-1", "--events", "1")) as {
        events: unknown[];
      };
      expect(events).toHaveLength(1);
      expect((await run(["show", "order-1", "--events", "2"])).stdout).toMatch(/the last 2 of \d+/);
    });

    test("logs prints what a run said, harmless to a terminal, and a JSON line each for programs", async () => {
      const text = await run(["logs", "order-1"], { isTerminal: true });
      expect(text.stdout).toContain("\\u001b[2Jbegun");
      expect(text.stdout).not.toContain("\u001B[2J");
      const lines = await run(["logs", "order-1", "--children", "--json"]);
      expect(
        lines.stdout
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as unknown),
      ).toMatchObject([
        { level: "warn", execution: "order-1" },
        { level: "info", message: "charging", data: { cents: 500 } },
      ]);
      const worse = await run(["logs", "order-1.o:1_1", "--level", "warn"]);
      expect(worse).toMatchObject({ stdout: "", stderr: "No lines.\n" });
    });

    test("no text of a run begins a line of its own, or steers a terminal", async () => {
      const evil = (field: string): string => `${field}\r\nFORGED ${field}\u009b2J\u202e\u2028`;
      const tags = [evil("tag")];
      const { executions } = holdfast;
      await executions.create({
        id: "forged",
        function: "lost",
        tags,
        concurrencyKey: evil("key"),
        codeVersion: evil("version"),
        input: evil("input"),
      });
      await executions.signal("forged", "go", evil("value"), { key: evil("signal key") });
      await executions.log("forged", [
        { level: "warn", message: evil("message"), step: evil("step"), data: evil("data") },
      ]);
      await executions.append("forged", (await executions.get("forged")).nextVersion, [
        { kind: "parked", code: "NONDETERMINISM", reason: evil("park"), codeVersion: null },
      ]);
      const printed = async (...args: readonly string[]): Promise<string> => {
        const { stdout, stderr } = await run(args, { isTerminal: true, columns: 4_000 });
        return stdout + stderr;
      };
      await executions.create({ id: "forged-3", function: "lost", metadata: { of: evil("data") } });
      const carried = await printed("show", "forged-3");
      expect(carried).toContain("of=data ⏎ FORGED data\\u009b2J");
      const parked = await printed("show", "forged");
      await executions.cancel("forged", { force: true, reason: evil("cancel") });
      await executions.create({ id: "forged-2", function: "lost" });
      const { nextVersion } = await executions.get("forged-2");
      const error = { name: evil("name"), message: evil("error"), data: evil("error data") };
      await executions.finish("forged-2", nextVersion, { kind: "failed", error });
      const texts = [
        parked,
        carried,
        await printed("show", "forged"),
        await printed("show", "forged-2"),
        await printed("logs", "forged"),
        await printed("list", "--id-prefix", "forged"),
        await printed("start", "lost", "--id", "forged-2", "--wait"),
        await printed("show", evil("typed")),
        await printed("list", "--status", evil("typed")),
        await printed("schedules", "fire", evil("typed")),
      ];
      for (const text of texts) {
        expect(text).toMatch(/forged/i);
        expect(text).not.toMatch(/^\s*FORGED/m);
        // oxlint-disable-next-line no-control-regex -- Only colours may be there.
        expect(text).not.toMatch(/[\u007f-\u009f\u202e\u2028\r]|\u001b(?!\[\d+m)/);
      }
      for (const [command, field] of [
        ["show", "tag"],
        ["logs", "message"],
        ["export", "input"],
      ] as const) {
        const { stdout } = await run([command, "forged", "--json"]);
        expect(stdout).not.toMatch(/[\u007f-\u009f\u202e\u2028]/);
        expect(JSON.stringify(JSON.parse(stdout))).toContain(JSON.stringify(evil(field)));
      }
    });

    test("logs --follow goes on until the run has ended, or it is stopped", async () => {
      await holdfast.executions.create({ id: "told", function: "lost" });
      const log = (message: string): Promise<void> =>
        holdfast.executions.log("told", [{ level: "info", message }]);
      await log("one");
      const stopped = await run(["logs", "told", "--follow"], {
        onOutput: (_, stop) => stop("SIGINT"),
      });
      expect(stopped.code).toBe(130);
      expect(stopped.stderr).toContain("Stopped after 1 lines. The run continues.");
      let heard = 0;
      const ended = await run(["logs", "told", "--follow", "--json"], {
        onOutput() {
          heard += 1;
          if (heard === 1) void log("two");
          else void holdfast.executions.cancel("told", { force: true });
        },
      });
      expect(ended.code).toBe(0);
      expect(ended.stdout.trimEnd().split("\n")).toHaveLength(2);
    });

    test("[RN5] a signal that the run does not wait for is sent with a warning, and counted in the end", async () => {
      await holdfast.start(fulfil, 1, { id: "typo-1" });
      await until("typo-1", "blocked");
      const mistyped = await run(["signal", "typo-1", "aproval"]);
      expect([mistyped.code, mistyped.stdout]).toEqual([
        0,
        "Sent signal aproval to typo-1, with the value true.\n",
      ]);
      expect(mistyped.stderr).toContain("typo-1 waits for approval, not for aproval.");
      expect((await run(["signal", "typo-1", "holdfast/wake"])).stderr).toContain("NAME_INVALID");
      const right = await run(["signal", "typo-1", "approval", "--value", '{"ok":true}']);
      expect([right.stdout, right.stderr]).toEqual(["Sent signal approval to typo-1.\n", ""]);
      await until("typo-1", "completed");
      expect((await run(["show", "typo-1"])).stdout).toContain("completed, 1 message unread\n");
      expect(await json("show", "typo-1")).toMatchObject({ result: { unread: 1 } });
      await holdfast.executions.erase("typo-1");
    });

    test("signal, pause, resume and cancel steer a run without its code", async () => {
      const value = '{"ok":true}';
      expect(await json("signal", "order-1", "approval", "--value", value, "--key", "k")).toEqual({
        id: "order-1",
        signal: "approval",
        seq: expect.any(Number),
        existed: false,
      });
      await until("order-1", "completed");
      expect((await run(["show", "order-1"])).stdout).toContain(
        'result    {"receipt":500,"ok":true,"at":{"$holdfast":"date","value":"1970-01-01T00:00:00.000Z"}}',
      );

      expect((await run(["show", "order-1"])).stdout).toMatch(
        /waits for signal approval\n(.*\n)*.* signal approval arrived: \{"ok":true\}\n(.*\n)*.* completed\n/,
      );
      expect(await json("show", "order-1")).toMatchObject({
        signals: [{ signal: "approval", value: { ok: true } }],
      });

      expect(await json("pause", "nap-1")).toEqual({
        id: "nap-1",
        isChanged: true,
      });
      await until("nap-1", "paused");
      expect((await run(["show", "nap-1"])).stdout).toContain("→ holdfast resume nap-1");
      expect((await run(["pause", "nap-1"])).stdout).toBe("nap-1 was already paused.\n");
      expect((await run(["resume", "nap-1"])).stdout).toBe("nap-1 was resumed.\n");
      expect(await json("cancel", "nap-1", "--reason", "enough", "--force")).toEqual({
        id: "nap-1",
        outcome: "cancelled",
      });
      expect(await json("cancel", "nap-1")).toEqual({
        id: "nap-1",
        outcome: "alreadyFinished",
      });
      expect((await run(["show", "nap-1"])).stdout).toContain("reason    enough");
    });

    test("[RN7] questions lists what is asked, and answer answers it once, in the right form", async () => {
      const { token } = (await holdfast.executions.get("ask-1")).progress as {
        token: string;
      };
      const listed = await run(["questions", "--tag", "counts"]);
      expect([listed.code, listed.stderr]).toEqual([0, expect.stringMatching(/^Answer/)]);
      expect(listed.stdout).toMatch(
        /^ID +FUNCTION +ASKED +UNTIL +ABOUT\nask-1\.o:1_1 +ask +\S.* ago +in 2\d h\S* .*\{"question":"how\\u001b\[2J many\?"\}\n$/,
      );
      expect(listed.stderr).toMatch(/^Answer one with: npx holdfast answer ask-1\.o:1_1 '…' --db/);
      expect(await json("questions", "--run", "ask-1")).toMatchObject({
        items: [{ id: "ask-1.o:1_1", run: "ask-1", schema: { type: "integer" } }],
        next: null,
      });
      expect((await run(["questions", "--function", "nap"])).stderr).toBe("No open questions.\n");
      const sleeper = await holdfast.start(nap, undefined, { id: "nap-asked" });
      await until("nap-asked", "blocked");
      expect(await json("questions", "--kind", "sleep", "--function", "nap")).toMatchObject({
        items: [{ kind: "sleep", run: "nap-asked" }],
      });
      await sleeper.cancel({ force: true });
      expect((await run(["questions", "--kind", "signal"])).code).toBe(2);
      expect(await run(["answer", "ask-1.o:1_1", "7.5"])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("must be integer"),
      });
      expect((await run(["answer", token, "-"], { input: "7" })).stdout).toBe(
        "Answered ask-1.o:1_1.\n",
      );
      expect((await run(["answer", "ask-1.o:1_1", "7"])).stdout).toContain(
        "already had the same answer",
      );
      expect(await run(["answer", "ask-1.o:1_1", "8"])).toMatchObject({
        code: 4,
        stderr: expect.stringContaining("was answered before with 7, which stays"),
      });
      expect((await run(["answer", "ask-1.o:1_1", "--fail", "no"])).code).toBe(4);
      expect((await run(["answer", "ask-1.o:1_1", "8", "--fail", "no"])).code).toBe(2);
      await until("ask-1", "completed");
    });

    test("retry and fork make copies, once under an id", async () => {
      const again = ["retry", "order-2", "--id", "order-2-again"];
      expect(await json(...again)).toEqual({
        id: "order-2-again",
        source: "order-2",
        existed: false,
      });
      expect(await json(...again)).toMatchObject({ existed: true });
      await until("order-2-again", "failed");
      const { id } = (await json("fork", "order-2", "--at", "0")) as {
        id: string;
      };
      await until(id, "failed");
      expect((await run(["retry", "ask-1"])).stderr).toMatch(/^NOT_FAILED: /);
      expect((await run(["fork", "order-2", "--at", "99"])).code).toBe(4);
      for (const taken of ["order-2", "order-1"])
        expect(await run(["fork", "order-2", "--at", "0", "--id", taken])).toMatchObject({
          code: 4,
          stderr: `EXECUTION_EXISTS: The id ${taken} is taken by a run that is not this copy; it was left unchanged, and nothing was copied. Choose another id for the copy.\n`,
        });
    });

    test("schedules lists them with their next instants, and pauses, resumes, fires and removes them", async () => {
      const nightly = schedule("nightly", { cron: "0 3 * * *" }, nap);
      await holdfast.work([nightly]);
      expect(await json("schedules")).toMatchObject({
        items: [
          {
            name: "nightly",
            function: "nap",
            next: Array.from({ length: 5 }, () => expect.any(Number) as number),
          },
        ],
      });
      expect((await run(["schedules", "list"])).stdout).toMatch(
        /^NAME +FUNCTION +WHEN +ZONE +LAST +NEXT\nnightly +nap +0 3 \* \* \* +UTC .*03:00, /,
      );
      expect(await json("schedules", "pause", "nightly")).toEqual({
        name: "nightly",
        isChanged: true,
      });
      expect((await run(["schedules"])).stdout).toContain("paused");
      expect((await run(["schedules", "resume", "nightly"])).stdout).toBe("nightly was resumed.\n");
      const fire = ["schedules", "fire", "nightly", "--key", "by-hand"];
      const { id, existed } = (await json(...fire)) as {
        id: string;
        existed: boolean;
      };
      expect(existed).toBe(false);
      await until(id, "blocked");
      expect(await json(...fire)).toEqual({
        name: "nightly",
        id,
        existed: true,
        status: "blocked",
      });
      expect((await run(fire)).stdout).toMatch(
        /^nightly@fire:by-hand of nightly was started before: waits until .*\.\n$/,
      );
      expect((await run(["schedules", "remove", "nightly"])).stdout).toBe("nightly was removed.\n");
      expect((await run(["schedules", "remove", "nightly"])).stdout).toBe(
        "nightly does not exist.\n",
      );
    });

    test("doctor names what is parked and what nobody runs, with the fix, and ends with 6", async () => {
      await holdfast.executions.create({ id: "sick", function: "sick" });
      await holdfast.executions.append("sick", 1, [
        {
          kind: "parked",
          code: "RUN_KEEPS_KILLING_WORKERS",
          reason: "five times",
          codeVersion: null,
        },
      ]);
      const said = await vi.waitFor(
        async () => {
          const { code, stdout } = await run(["doctor"]);
          expect(stdout).toContain("no worker serves lost: lost-1 is overdue by");
          return { code, stdout };
        },
        { timeout: timeoutMs, interval: 200 },
      );
      expect(said.code).toBe(6);
      expect(said.stdout).toContain(
        "1 run is parked with RUN_KEEPS_KILLING_WORKERS, such as sick of sick",
      );
      expect(said.stdout).toContain("then npx holdfast unpark sick");
      expect(said.stdout).toMatch(/^ok +versions +holdfast \d/);
      const { stdout, code } = await run(["doctor", "--json"]);
      expect(code).toBe(6);
      expect(JSON.parse(stdout)).toMatchObject({ isWell: false });
    });

    test("check reads every row and finds nothing", async () => {
      expect(await json("check")).toMatchObject({ isSound: true, damaged: [] });
      expect((await run(["check"])).stdout).toMatch(/^No damage: \d+ rows/);
    });

    test("a parked run is shown with the recorded and the actual call, and unparked", async () => {
      await holdfast.executions.create({
        id: "odd",
        function: "odd",
        role: "workflow",
      });
      const { nextVersion } = await holdfast.executions.get("odd");
      await holdfast.executions.append("odd", nextVersion, [
        {
          kind: "parked",
          code: "NONDETERMINISM",
          reason: "  recorded: step a\n  actual:   step b",
          codeVersion: null,
        },
      ]);
      const { stdout } = await run(["show", "odd"]);
      expect(stdout).toMatch(/ parked \d[^\n]* ago: NONDETERMINISM\n/);
      expect(stdout).toContain("\n│   recorded: step a\n│   actual:   step b\n");
      expect(stdout).toMatch(/→ npx holdfast unpark odd --db \S+( --schema \S+)? {3}\(once/);
      expect((await run(["unpark", "odd"])).stdout).toContain("was unparked. The next worker");
      expect((await run(["unpark", "odd"])).stdout).toBe("odd was not parked.\n");
    });

    test("[RN1] a parked run is shown with the recorded and the actual call in columns", async () => {
      const forged = "charge\n  actual:   forged";
      const common = { inputHash: null, codeVersion: "v1" };
      const mismatch = {
        call: 3,
        version: 7,
        recorded: { ...common, kind: "step", name: forged, target: "" },
        actual: { kind: "start", name: "mail", target: "m", inputHash: "ab", codeVersion: "v2" },
      } as const;
      const reason = `Run x:\n  recorded: step ${forged}\n  actual:   start\nPut the old way back.`;
      for (const [id, actual] of [
        ["two-calls", mismatch.actual],
        ["one-call", null],
      ] as const) {
        await holdfast.executions.create({ id, function: "odd" });
        await holdfast.executions.append(id, 1, [
          {
            kind: "parked",
            code: "NONDETERMINISM",
            reason,
            codeVersion: null,
            mismatch: { ...mismatch, actual },
          },
        ]);
      }
      expect((await run(["show", "two-calls"])).stdout).toContain(
        [
          "",
          "NONDETERMINISM at call 3, event 7",
          "          CALL   NAME                         TARGET  INPUT  CODE VERSION",
          "recorded  step   charge ⏎   actual:   forged                 v1",
          "actual    start  mail                         m       ab     v2",
          "│ Put the old way back.",
          "",
        ].join("\n"),
      );
      expect((await run(["show", "one-call"])).stdout).toContain("\n│   actual:   start\n│ Put");
      expect(await json("show", "two-calls")).toMatchObject({
        run: { interruption: { mismatch } },
        events: [{}, { event: { mismatch } }],
      });
    });

    test("show has children below what called them, and what a call took", async () => {
      const branch = workflow("branch", (ctx) => ctx.call(charge, 7));
      const tree = workflow("tree", (ctx) => Promise.all([ctx.call(branch), ctx.call(charge, 8)]));
      await holdfast.work([tree, branch]);
      await (await holdfast.start(tree, undefined, { id: "tree" })).result();
      const { stdout } = await run(["show", "tree"]);
      expect(stdout).toMatch(/ called branch \(tree\.o:1_1\), took \S+ m?s$/m);
      const [, children = ""] = stdout.split("\nChildren\n");
      expect(
        children
          .trimEnd()
          .split("\n")
          .map((line) => /^ *\S+ +\S+ +\S+/.exec(line)?.[0].split(/\b +/)),
      ).toEqual([
        ["ID", "FUNCTION", "STATUS"],
        ["tree.o:1_1", "branch", "completed"],
        ["  tree.o:1_1.o:1_1", "billing/charge", "completed"],
        ["tree.o:2_1", "billing/charge", "completed"],
      ]);
    });

    test.each([
      [["schedules", "fire", "nothing"], /: npx holdfast schedules --db \S+/],
      [["schedules", "pause", "nothing"], /: npx holdfast schedules --db \S+/],
      [["retry", "lost-1"], /: npx holdfast fork lost-1 --at <version> --db/],
      [["pause", "order-2"], /: npx holdfast show order-2 --db/],
      [["answer", "lost-1"], /: npx holdfast show lost-1 --db/],
    ])("what refuses %j names a command", async (args, said) => {
      const { stderr } = await run(args);
      expect(stderr).toMatch(said);
      expect(stderr).not.toContain("()");
    });

    test.each([
      [["show", "nobody"], 3, "EXECUTION_NOT_FOUND"],
      [["logs", "nobody"], 3, "EXECUTION_NOT_FOUND"],
      [["show", "not an id!"], 2, "ID_MALFORMED"],
      [["show", "../../etc"], 2, "ID_MALFORMED"],
      [["show"], 2, "OPTION_INVALID"],
      [["show", "a", "--events", "-1"], 2, "OPTION_INVALID"],
      [["logs", "a", "--level", "loud"], 2, "OPTION_INVALID"],
      [["list", "--limit", "0"], 2, "OPTION_INVALID"],
      [["list", "--after", "nonsense"], 2, "CURSOR_INVALID"],
      [["signal", "nobody", "go"], 3, "EXECUTION_NOT_FOUND"],
      [["signal", "lost-1", ""], 2, "NAME_INVALID"],
      [["signal", "lost-1", "go", "--value", "{ok"], 2, "OPTION_INVALID"],
      [["signal", "lost-1", "go", "--value", '{"$holdfast":"nothing"}'], 2, "OPTION_INVALID"],
      [["signal", "order-2", "go"], 4, "EXECUTION_FINISHED"],
      [["cancel", "nobody"], 3, "EXECUTION_NOT_FOUND"],
      [["cancel", "lost-1", "--reason", ""], 2, "NAME_INVALID"],
      [["pause", "order-2"], 4, "EXECUTION_FINISHED"],
      [["resume", "nobody"], 3, "EXECUTION_NOT_FOUND"],
      [["unpark", "E_bad"], 2, "ID_MALFORMED"],
      [["retry", "order-2", "--id", "E_bad"], 2, "ID_MALFORMED"],
      [["fork", "order-2"], 2, "OPTION_INVALID"],
      [["fork", "order-2", "--at", "first"], 2, "OPTION_INVALID"],
      [["answer", "order-2", "1"], 4, "NOT_EXTERNAL"],
      [["answer", "ask-1.o:1_1~forged"], 2, "AWAIT_TOKEN_INVALID"],
      [["answer", "a", "1", "--fail", "no"], 2, "OPTION_INVALID"],
      [["schedules", "pause", "nothing"], 3, "SCHEDULE_NOT_FOUND"],
      [["schedules", "resume", "a b"], 2, "NAME_INVALID"],
      [["schedules", "fire", "nothing", "--key", ""], 2, "OPTION_INVALID"],
      [["schedules", "fire", "nothing"], 3, "SCHEDULE_NOT_FOUND"],
      [["schedules", "pase"], 2, "OPTION_INVALID"],
      [["doctor", "now"], 2, "OPTION_INVALID"],
      [["check", "--ful"], 2, "OPTION_INVALID"],
      [["backup"], 2, "OPTION_INVALID"],
    ] as const)("%j is refused with code %d and %s", async (args, code, error) => {
      const ran = await run(args);
      expect(ran.stderr.split(":")[0]).toBe(error);
      expect(ran).toMatchObject({ code, stdout: "" });
    });
  });
}
