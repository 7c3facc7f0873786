import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { nodeWithSqlite } from "../../scripts/node-with-sqlite.ts";
import { projectRoot } from "../../scripts/project.ts";
import { Installed, isAlive, Said, type Project } from "./installed.ts";
import type { SideEffect } from "../../src/cli/demo/orders.ts";

let withAddon: Installed;
let withoutAddon: Installed;

beforeAll(async () => {
  withAddon = await Installed.with(["better-sqlite3"]);
  withoutAddon = await Installed.with([]);
});

afterAll(() => {
  withAddon.dispose();
  withoutAddon.dispose();
});

/** Of a pace at which the kill hits an order in the middle also when the demo is slow to hear of its steps. */
const fast = ["demo", "--orders", "4", "--pace", "250ms"];
const steps = ["reserve stock", "charge card", "print label", "send mail"];
const orders = ["order-1", "order-2", "order-3", "order-4"];

/** A folder for temporary files of its own. */
function temporary(project: Project): Readonly<Record<string, string>> {
  mkdirSync(project.file("tmp"));
  return { TMPDIR: project.file("tmp") };
}

/** What each step has left outside: the processes in which it ran for each order. */
function processesIn(project: Project): ReadonlyMap<string, readonly number[]> {
  const [folder = ""] = readdirSync(project.file("tmp")).filter((name) =>
    name.startsWith("holdfast-demo-"),
  );
  const file = path.join(project.file("tmp"), folder, "side-effects.jsonl");
  const ranIn = new Map<string, readonly number[]>();
  for (const line of readFileSync(file, "utf8").trim().split("\n")) {
    const { order, step, process: ran } = JSON.parse(line) as SideEffect;
    const name = `${step} of ${order}`;
    ranIn.set(name, [...(ranIn.get(name) ?? []), ran]);
  }
  return ranIn;
}

/**
 * Every step ran for every order, again only when its process was killed, and
 * as often as the demo says. Which steps the kill hits is left to the machine:
 * one that ended just before it may have had no record yet.
 */
function expectCountsAsSaid(stdout: string, project: Project, fulfilled: readonly string[]): void {
  const ranIn = processesIn(project);
  expect([...ranIn.keys()].toSorted()).toEqual(
    steps.flatMap((step) => fulfilled.map((order) => `${step} of ${order}`)).toSorted(),
  );
  const killed = Number(/Killed worker . \(process (\d+)\)/.exec(stdout)?.[1]);
  for (const [name, processes] of ranIn) {
    const [first, again, third] = processes;
    expect({ name, third }).toEqual({ name, third: undefined });
    if (again !== undefined) expect([name, first]).toEqual([name, killed]);
  }
  for (const step of steps) {
    const ran = fulfilled.reduce(
      (sum, order) => sum + (ranIn.get(`${step} of ${order}`)?.length ?? 0),
      0,
    );
    const of = fulfilled.length;
    expect(stdout).toMatch(
      ran === of
        ? new RegExp(`\\n  ${step} +${of} +${ran}  once for each order\\n`)
        : new RegExp(
            `\\n  ${step} +${of} +${ran}  ${ran - of} interrupted by the kill and run again, with the same idempotency key\\n`,
          ),
    );
  }
}

const ways = [
  ["this Node and better-sqlite3", () => withAddon, () => process.execPath],
  ["Node 24 and node:sqlite", () => withoutAddon, nodeWithSqlite],
] as const;

test.concurrent.each(ways)(
  "the demo kills a worker, and every order is done; with %s",
  async (way, installed, binary) => {
    const project = installed().project(`demo-${way.length}`);
    const env = temporary(project);
    const { code, stdout, stderr } = await project.run(fast, {
      env,
      binary: binary(),
    });
    expect(stderr).toBe("");
    expect(code).toBe(0);
    // Plain lines, nothing for a terminal.
    expect(stdout).not.toContain("\u001b");
    for (const order of orders) expect(stdout).toContain(`${order}: done\n`);
    expect(stdout).toMatch(/\n\d+ ms later worker [12] \(process \d+\) resumed its orders/);

    expectCountsAsSaid(stdout, project, orders);
    expect(stdout).toContain("No recorded step ran again");
    const tries = stdout.slice(stdout.indexOf("Three things to try:"));
    expect(tries.match(/^ {2}\d\. /gm)).toHaveLength(3);

    // The second of the things to try, as it is written.
    const [, list = ""] = /npx holdfast (list --db \S+)/.exec(tries) ?? [];
    const listed = await project.run([...list.split(" "), "--json"], {
      binary: binary(),
    });
    const { items } = JSON.parse(listed.stdout) as {
      items: readonly { id: string; status: string; parent: string | null }[];
    };
    expect(
      items
        .filter(({ parent }) => parent === null)
        .map(({ id, status }) => `${id} ${status}`)
        .toSorted(),
    ).toEqual(orders.map((order) => `${order} completed`));
  },
);

test.concurrent(
  "npm start of a checkout runs the demo from its sources, and names commands that work there",
  async () => {
    const project = withAddon.project("checkout");
    const env = { ...process.env, ...temporary(project) };
    const args = ["start", "--silent", "--", "--orders", "2", "--pace", "250ms"];
    const options = { cwd: projectRoot, env };
    const { code, stdout } = await new Said(spawn("npm", args, options)).ended();
    expect(code).toBe(0);
    for (const said of [
      /^Killed worker . \(process \d+\) with SIGKILL/m,
      /^\d+ ms later worker/m,
      /^No recorded step ran again/m,
    ])
      expect(stdout).toMatch(said);
    expectCountsAsSaid(stdout, project, orders.slice(0, 2));
    const [, command = "", rest = ""] = /npx tsx (src\S+) (list --db \S+)/.exec(stdout) ?? [];
    const listed = await new Said(
      spawn(process.execPath, ["--import", "tsx", command, ...rest.split(" ")], options),
    ).ended();
    expect(listed.stdout).toMatch(/^order-1 +orders\/fulfil +completed/m);
  },
);

test.concurrent(
  "on a terminal the demo draws in place, within its width, without colours under NO_COLOR, and gives the cursor back",
  async () => {
    const project = withAddon.project("terminal");
    const env = { ...temporary(project), NO_COLOR: "1" };
    const { code, stdout } = await project.startInTerminal(fast, { env }).ended();
    expect(code).toBe(0);
    expect(stdout).toContain("\u001b[6A");
    expect(stdout).not.toContain("\u001b[2m");
    expect(stdout.lastIndexOf("\u001b[?25h")).toBeGreaterThan(stdout.lastIndexOf("\u001b[?25l"));
    const drawn = stdout.slice(0, stdout.lastIndexOf("\u001b[?25h"));
    const lines = drawn
      .split("\n")
      .filter((line) => line.endsWith("\u001b[K\r"))
      .map((line) => stripVTControlCharacters(line).replaceAll("\r", ""));
    expect(lines.length).toBeGreaterThan(20);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(90);
    expect(lines.findLast((line) => line.includes("order-4"))).toMatch(
      /order-4 +orders\/fulfil +completed/,
    );
  },
);

test.concurrent.each(["SIGINT", "SIGTERM"] as const)(
  "the demo that gets %s takes its workers and its files with it",
  async (signal) => {
    const project = withAddon.project(`stopped-by-${signal}`);
    // So slow that the demo kills no worker itself before it is stopped.
    const demo = project.start(["demo", "--orders", "20", "--pace", "1m"], {
      env: temporary(project),
    });
    await demo.until("order-1: reserve stock");
    const workers = childrenOf(demo.process.pid);
    expect(workers).toHaveLength(2);
    expect(workers.map(isAlive)).toEqual([true, true]);
    demo.process.kill(signal);
    const { code, stdout } = await demo.ended();
    expect(code).toBe(signal === "SIGINT" ? 130 : 143);
    expect(stdout).toContain("Stopped.");
    expect(workers.map(isAlive)).toEqual([false, false]);
    expect(readdirSync(project.file("tmp"))).toEqual([]);
  },
);

test.concurrent(
  "a demo that is held up until the step in the middle is recorded kills its worker all the same, and ends",
  async () => {
    const project = withAddon.project("held-up");
    const demo = project.start(fast, { env: temporary(project) });
    await demo.until("order-2: print label");
    demo.process.kill("SIGSTOP");
    await sleep(2_000);
    demo.process.kill("SIGCONT");
    const { code, stdout } = await demo.ended();
    expect(code).toBe(0);
    expect(stdout).toContain("with SIGKILL");
    expect(stdout).toContain("nothing was lost");
  },
);

test.concurrent(
  "Ctrl-C on a terminal ends the demo while it draws, and removes its files",
  async () => {
    const project = withAddon.project("ctrl-c");
    const demo = project.startInTerminal(["demo", "--orders", "20"], {
      env: temporary(project),
    });
    await demo.until("order-1");
    demo.process.stdin?.write("\u0003");
    const { code, stdout } = await demo.ended();
    expect(code).toBe(130);
    expect(stdout).toContain("\u001b[?25h");
    expect(stdout).toMatch(/Stopped\. The worker processes have ended[^\n]*\n$/);
    expect(readdirSync(project.file("tmp"))).toEqual([]);
  },
);

test.concurrent("output that nobody reads ends the demo, its workers and its files", async () => {
  const project = withAddon.project("head");
  // The second order, of which it cannot tell, begins after 0.6 steps; the
  // demo kills a worker itself after eight.
  const demo = project.start(["demo", "--orders", "20", "--pace", "3s"], {
    env: temporary(project),
  });
  await demo.until("order-1: reserve stock");
  const workers = childrenOf(demo.process.pid);
  expect(workers).toHaveLength(2);
  demo.process.stdout?.destroy();
  expect((await demo.ended()).code).toBe(0);
  expect(workers.map(isAlive)).toEqual([false, false]);
  expect(readdirSync(project.file("tmp"))).toEqual([]);
});

/** The processes that a process has started. */
function childrenOf(pid: number | undefined): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        const [, , parent] = stat.slice(stat.lastIndexOf(")")).split(" ");
        return Number(parent) === pid;
      } catch {
        return false; // It has ended meanwhile.
      }
    })
    .map(Number);
}
