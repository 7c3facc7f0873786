import { execFile } from "node:child_process";
import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { timeoutMs } from "../depth.ts";
import { Installed, type Said } from "./installed.ts";

let installed: Installed;

beforeAll(async () => {
  installed = await Installed.with(["better-sqlite3", "tsx"]);
});

afterAll(() => installed.dispose());

const head = `import { appendFileSync } from "node:fs";
import { activity, schedule, workflow } from "holdfast";
`;

const greeting = `${head}
import { signal } from "holdfast";
import { hello } from "./words.mjs";
const go = signal("go");
export const greet = workflow("greet", async (ctx, name) => {
  const text = await ctx.step("compose", () => hello + ", " + name);
  await ctx.receive(go);
  return text;
});
`;

/** What `start` says on standard error: on a slow machine also that nobody has taken the run yet. */
function saidBeforeTaken(name: string, id: string, first = ""): RegExp {
  return new RegExp(
    `^${first}(No worker serves "${name}" yet, so ${id} waits\\. Start one: .* work <file>\n)?$`,
  );
}

test.concurrent(
  "what init has written runs by node, also when its folder is named by a link",
  async () => {
    const project = installed.project("init", {});
    const { code, stdout } = await project.run(["init"]);
    expect(code).toBe(0);
    const [name = ""] = /app\.m[jt]s/.exec(stdout) ?? [];
    symlinkSync(project.folder, project.file("link"));
    const said = await promisify(execFile)(process.execPath, [project.file(`link/${name}`)], {
      cwd: project.folder,
    });
    expect(said.stdout).toContain("label of order-1");
  },
);

test.concurrent(
  "dev, in a terminal, loads a module again when it or what it imports changes, shows its mistakes, and unparks what was mended",
  async () => {
    const project = installed.project("dev", {
      "app.mjs": greeting,
      "words.mjs": 'export const hello = "Hello";\n',
    });
    const dev = project.startInTerminal(["dev", "app.mjs"], {
      env: { NO_COLOR: "1" },
    });
    await dev.until("Running greet.");
    const started = await project.run(["start", "app.mjs", "--input", '"Ada"', "--id", "one"]);
    expect(started).toMatchObject({
      code: 0,
      stdout: "Started one of greet.\n",
      stderr: expect.stringMatching(saidBeforeTaken("greet", "one")) as string,
    });
    await dev.until("waits for signal go");

    // A call that the run did not make before: it is parked, with the reason.
    project.write("app.mjs", greeting.replace('"compose"', '"put together"'));
    await dev.until("app.mjs has changed.");
    await dev.until("Running greet.");
    await send(project.file("holdfast.db"), "one", "go");
    await dev.until('recorded: step "compose"');
    await dev.until("NONDETERMINISM");

    // A mistake is shown with its place, and what was there goes on waiting.
    project.write("app.mjs", greeting.replace("return text;", "return text ="));
    await dev.until("app.mjs cannot be run:");
    await dev.until("app.mjs:11");
    await dev.until("SyntaxError: Unexpected token '}'");

    // Mended, the run goes on.
    project.write("app.mjs", greeting);
    await dev.until("Running greet.");
    await dev.until("Unparked one");
    await dev.until("completed");

    // What it imports is watched too.
    project.write("words.mjs", 'export const hello = "Goodbye";\n');
    await dev.until("words.mjs has changed.");
    await dev.until("Running greet.");
    const { stdout } = await project.run(["list", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      items: [{ id: "one", status: "completed" }],
    });

    dev.process.stdin?.write("\u0003");
    const ended = await dev.ended();
    expect(ended.code).toBe(130);
    expect(ended.stdout).toContain("Stopped. Running work was recorded or released");
    expect(ended.stdout.lastIndexOf("\u001b[?25h")).toBeGreaterThan(
      ended.stdout.lastIndexOf("\u001b[?25l"),
    );
  },
);

test.concurrent(
  "dev on a pipe says lines, or JSON, and starts a worker again that was killed",
  async () => {
    const project = installed.project("dev-on-a-pipe", {
      "app.mjs": `${head}
import { existsSync, writeFileSync } from "node:fs";
export default [
  workflow("patient", (ctx) =>
    ctx.step("wait", async () => {
      writeFileSync("began", String(process.pid));
      while (!existsSync("go")) await new Promise((done) => setTimeout(done, 20));
    }),
  ),
];`,
    });
    const dev = project.start(["dev", "app.mjs", "--json"]);
    await dev.until('"message":"Running patient."');
    await project.run(["start", "app.mjs", "--id", "me"]);
    await vi.waitUntil(() => existsSync(project.file("began")), timeoutMs);
    const worker = Number(readFileSync(project.file("began"), "utf8"));
    process.kill(worker, "SIGKILL");
    await dev.until("The worker process ended (SIGKILL)");
    await dev.until("Running patient.");
    project.write("go", "");
    await dev.until('"status":"completed"');
    dev.process.kill("SIGTERM");
    const { code, stdout } = await dev.ended();
    expect(code).toBe(143);
    for (const line of stdout.trim().split("\n"))
      expect(JSON.parse(line)).toHaveProperty("message");
  },
);

/** Sends a run a signal, as an app would. */
async function send(file: string, id: string, name: string): Promise<void> {
  const holdfast = await openHoldfast(file);
  await holdfast.executions.signal(id, name, true);
  await holdfast.close();
}

const counting = `${head}
const count = (line) => appendFileSync("counted.txt", line + "\\n");
export const charge = activity("charge", async (ctx, cents) => {
  count("charge");
  return cents;
});
export const order = workflow("order", async (ctx, cents) => {
  const paid = await ctx.call(charge, cents);
  await ctx.step("pack", async () => {
    count("pack " + process.pid);
    if (process.env.SLOW) await new Promise((done) => setTimeout(done, Number(process.env.SLOW)));
  });
  ctx.log.info("packed", { paid });
  return { paid };
});
export const yearly = schedule("yearly", { cron: "0 3 1 1 *" }, order, 1);
`;

test.concurrent(
  "work says in JSON lines what it does, records what runs when it gets SIGTERM, and what a killed one left goes on in another",
  async () => {
    const project = installed.project("work", { "app.mjs": counting });
    const counted = (): readonly string[] =>
      existsSync(project.file("counted.txt"))
        ? readFileSync(project.file("counted.txt"), "utf8").trim().split("\n")
        : [];
    const packing = ({ process: { pid } }: Said): Promise<unknown> =>
      vi.waitUntil(() => counted().includes(`pack ${pid}`), timeoutMs);
    const first = project.start(["work", "app.mjs"], { env: { SLOW: "500" } });
    await first.until('"message":"working"');
    await project.run(["start", "order", "--input", "500", "--id", "a"]);
    await packing(first);
    first.process.kill("SIGTERM");
    const ended = await first.ended();
    expect(ended.stderr).toBe("");
    expect(ended.code).toBe(143);
    const lines = ended.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { level: string; message: string });
    expect(lines.map(({ message }) => message)).toEqual(
      expect.arrayContaining(["working", "stopping", "stopped"]),
    );
    expect(lines.find(({ message }) => message === "working")).toMatchObject({
      level: "info",
      functions: ["charge", "order"],
      database: "holdfast.db",
    });

    // The next one dies in the middle of a step.
    const second = project.start(["work", "app.mjs"], {
      env: { SLOW: "60000" },
    });
    await second.until('"message":"working"');
    await project.run(["start", "order", "--input", "700", "--id", "b"]);
    await packing(second);
    const third = project.start(["work", "app.mjs"]);
    await third.until('"message":"working"');
    second.process.kill("SIGKILL");
    await second.ended();
    for (const [id, paid] of [
      ["a", 500],
      ["b", 700],
    ] as const) {
      const { code, stdout } = await project.run([
        "start",
        "order",
        "--input",
        String(paid),
        "--id",
        id,
        "--wait",
        "--json",
      ]);
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toEqual({
        id,
        function: "order",
        existed: true,
        value: { paid },
      });
    }
    // What was recorded was not done again; what was interrupted was.
    expect(counted().filter((line) => line === "charge")).toHaveLength(2);
    third.process.kill("SIGTERM");
    const { stdout } = await third.ended();
    expect(stdout).toContain('"message":"packed"');
    expect(stdout).toContain('"data":{"paid":700}');
  },
);

const halving = `import { workflow } from "holdfast";
const input = { "~standard": { version: 1, vendor: "test", validate: (value: unknown) =>
  typeof value === "number" ? { value } : { issues: [{ message: "no number" }] } } } as const;
export const half = workflow("half", { input }, async (ctx, n: number) => {
  if (n % 2 === 1) throw new Error("it is odd");
  return n / 2;
});
`;

test.concurrent(
  "start checks the input by the schema of the code, says when nobody runs the function, and tells how a run failed",
  async () => {
    const project = installed.project("start", { "app.mts": halving });
    const refused = await project.run(["start", "app.mts", "--input", '"x"']);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("INPUT_INVALID");

    const unserved = await project.run([
      "start",
      "app.mts",
      "half",
      "--input",
      "4",
      "--id",
      "four",
    ]);
    expect(unserved).toMatchObject({
      code: 0,
      stdout: "Started four of half.\n",
    });
    expect(unserved.stderr).toContain('No worker serves "half" yet, so four waits.');

    const again = ["start", "half", "--input", "4", "--id", "four", "--json"];
    expect(JSON.parse((await project.run(again)).stdout)).toEqual({
      id: "four",
      function: "half",
      existed: true,
      status: "pending",
      isTaken: false,
    });

    const worker = project.start(["work", "app.mts"]);
    await worker.until('"message":"working"');
    const four = ["start", "half", "--input", "4", "--id", "four", "--wait"];
    const waited = await project.run(four);
    expect(waited).toMatchObject({ code: 0, stdout: "2\n" });
    expect(waited.stderr).toMatch(
      saidBeforeTaken("half", "four", "four of half was started before: [^\n]+\\.\n"),
    );
    const failed = await project.run(["start", "half", "--input", "3", "--wait"]);
    expect(failed).toMatchObject({ code: 1, stdout: "" });
    expect(failed.stderr).toMatch(/Run E_\w+ of half failed.*it is odd/);
    const conflict = await project.run(["start", "half", "--input", "6", "--id", "four"]);
    expect(conflict.code).toBe(4);
    expect(conflict.stderr).toContain("EXECUTION_EXISTS");
    worker.process.kill("SIGTERM");
    await worker.ended();
  },
);

test.concurrent(
  "what the program starts itself by is no command for people, and a module that is no TypeScript of Node's is loaded by tsx",
  async () => {
    const project = installed.project("alone", {
      "broken.mjs": "export const a = (;\n",
      "enums.mts": `import { workflow } from "holdfast";
enum Size { Small }
export const sized = workflow("sized", async () => Size.Small);
`,
      "untyped.ts": `import { workflow } from "holdfast";
export const plain = workflow("plain", async (ctx, text: string) => text);
`,
      "greedy.mjs": `import { openHoldfast, workflow } from "holdfast";
export const greedy = workflow("greedy", async () => 1);
await (await openHoldfast("./own.db")).work([greedy]);
`,
      "stuck.mjs": "export const a = await new Promise(() => undefined);\n",
    });
    const [demo, dev, broken, stuck, help] = await Promise.all([
      project.run(["demo-worker", "x.db", "file", "1"]),
      project.run(["dev-worker", "broken.mjs"]),
      project.run(["work", "broken.mjs"]),
      project.run(["work", "stuck.mjs"]),
      project.run(["--help"]),
    ]);
    expect(demo.code).toBe(2);
    expect(demo.stderr).toContain("Run `npx holdfast demo`");
    expect(dev.code).toBe(2);
    expect(dev.stderr).toContain("`npx holdfast dev` starts this command");
    expect(broken.code).toBe(2);
    expect(broken.stderr).toContain("SyntaxError: Unexpected token ';'");
    expect(stuck.code).toBe(2);
    expect(stuck.stderr).toMatch(/MODULE_NOT_LOADED.*never settles/);
    expect(help.stdout).not.toContain("-worker");
    for (const file of ["enums.mts", "untyped.ts", "greedy.mjs"]) {
      const worker = project.start(["work", file]);
      await worker.until('"message":"working"');
      worker.process.kill("SIGINT");
      expect((await worker.ended()).code).toBe(130);
    }
  },
);
