import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { compiled } from "./compile-children.ts";
import { isDeep, seed, timeoutMs } from "./depth.ts";

const root = join(import.meta.dirname, "..");

/** Runs an example as a user would, from a folder. */
function runExample(
  name: string,
  folder: string,
  env: Record<string, string> = {},
  script: readonly string[] = [compiled(name, "examples")],
): string {
  return execFileSync(process.execPath, script, {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, TMPDIR: folder, ...env },
  });
}

/** An empty folder that is gone afterwards. */
function inFolder(body: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-example-"));
  try {
    body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What a run has left; tsx keeps what it compiled in the folder for temporary files. */
const leftIn = (folder: string): readonly string[] =>
  readdirSync(folder).filter((name) => !/^(tsx-|node-compile-cache)/.test(name));

/** Starts the web server on a free port, and waits until it listens. */
async function startServer(folder: string) {
  const server = spawn(process.execPath, [compiled("web-server.ts", "examples")], {
    cwd: folder,
    env: { ...process.env, TMPDIR: folder, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = (await once(server.stdout, "data")) as [Buffer];
  const [, url = ""] = /^listening on (.+)\n$/.exec(String(said)) ?? [];
  const ask = async (method: string, place: string, body?: object) => {
    const given = body && { body: JSON.stringify(body) };
    const answer = await fetch(`${url}${place}`, { method, ...given });
    return { status: answer.status, body: await answer.text() };
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ended = once(server, "exit");
    server.kill(signal);
    expect(await ended).toEqual([null, signal]);
  };
  return { ask, end };
}

/** The comment block after `// Output:` at the end of an example. */
function promisedOutput(name: string): string | undefined {
  const [, output] = readFileSync(join(root, "examples", name), "utf8").split("\n// Output:\n");
  return output?.replaceAll(/^\/\/ ?/gm, "");
}

describe("examples", () => {
  const names = readdirSync(join(root, "examples")).filter(
    (name) => name.endsWith(".ts") && promisedOutput(name) !== undefined,
  );

  test("there is one to run", () => expect(names).toContain("quickstart.ts"));

  /** README's app: what it has written is there when it is run again. */
  const keeping = "quickstart.ts";

  /** What leaves nothing finds nothing the second time: a short run tries that with a third, in turn by its seed. */
  const timesOf = (name: string): number =>
    isDeep || names.indexOf(name) % 3 === seed % 3 ? 2 : 1;

  test.each(names.filter((name) => name !== keeping))(
    "%s prints what it promises as often as it is run, and leaves nothing",
    (name) =>
      inFolder((folder) => {
        for (let times = 0; times < timesOf(name); times += 1)
          expect(runExample(name, folder)).toBe(promisedOutput(name));
        expect(leftIn(folder)).toEqual([]);
      }),
  );

  test("the first one prints what it promises, and its result alone when it is run again", () =>
    inFolder((folder) => {
      const promised = promisedOutput(keeping) ?? "";
      expect(runExample(keeping, folder)).toBe(promised);
      const result = promised.slice(promised.indexOf("{"));
      expect(runExample(keeping, folder)).toBe(result);
      expect(leftIn(folder)).toEqual(["orders.db"]);
    }));

  test("their own tests pass, in Node's runner", () => {
    const tests = readdirSync(join(root, "examples"))
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => join(root, "examples", name));
    const env = { TSX_TSCONFIG_PATH: join(root, "tsconfig.json") };
    const script = ["--import", import.meta.resolve("tsx"), "--test", ...tests];
    inFolder((folder) => {
      const said = runExample("", folder, env, script);
      expect(said).toMatch(/^(#|ℹ) pass [1-9]/m);
      expect(said).toMatch(/^(#|ℹ) fail 0$/m);
    });
  });

  test("one runs from its source, too", () =>
    inFolder((folder) => {
      const script = ["--import", import.meta.resolve("tsx"), join(root, "examples", keeping)];
      const env = { TSX_TSCONFIG_PATH: join(root, "tsconfig.json") };
      expect(runExample(keeping, folder, env, script)).toBe(promisedOutput(keeping));
    }));

  test("the web server takes an order, is killed, and goes on with it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-example-"));
    try {
      const first = await startServer(folder);
      const lamp = { item: "lamp" };
      for (const _ of ["once", "again"])
        expect(await first.ask("PUT", "/orders/a1", lamp)).toEqual({
          status: 202,
          body: '{"id":"a1"}',
        });
      const taken = await first.ask("PUT", "/orders/a1", { item: "chair" });
      expect(taken).toEqual({
        status: 409,
        body: '{"code":"EXECUTION_EXISTS"}',
      });
      const unknown = await first.ask("GET", "/orders/a2");
      expect(unknown).toEqual({
        status: 404,
        body: '{"code":"EXECUTION_NOT_FOUND"}',
      });
      await first.end("SIGKILL");

      const second = await startServer(folder);
      const approval = "/orders/a1/approval";
      const { status } = await second.ask("POST", approval, { ok: true });
      expect(status).toBe(204);
      let told = await second.ask("GET", "/orders/a1");
      while (!told.body.includes("completed")) told = await second.ask("GET", "/orders/a1");
      const result = '{"status":"completed","result":"lamp for 400 cents"}';
      expect(told).toEqual({ status: 200, body: result });
      await second.end("SIGTERM");
      expect(leftIn(folder)).toEqual(["shop.db"]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("the files for Next start a worker, and a handler's order is done by it", () =>
    inFolder((folder) => {
      const [start, route] = ["instrumentation.ts", "app/api/orders/[id]/route.ts"]
        .map((name) => compiled(`next/${name}`, "examples"))
        .map((file) => JSON.stringify(pathToFileURL(file).href));
      const script = `
        import { register } from ${start};
        import { GET, PUT } from ${route};
        await register();
        const given = { params: Promise.resolve({ id: "a1" }) };
        const url = "http://localhost/api/orders/a1";
        const body = JSON.stringify({ item: "lamp" });
        const put = await PUT(new Request(url, { method: "PUT", body }), given);
        console.log(put.status, await put.text());
        let got = "";
        while (!got.includes("completed")) {
          await new Promise((resolve) => setTimeout(resolve, 10));
          got = await (await GET(new Request(url), given)).text();
        }
        console.log(got);
        process.kill(process.pid, "SIGTERM");`;
      const { stdout, signal } = spawnSync(
        process.execPath,
        ["--input-type=module", "-e", script],
        {
          cwd: folder,
          encoding: "utf8",
          env: { ...process.env, TMPDIR: folder, NEXT_RUNTIME: "nodejs" },
          timeout: timeoutMs,
        },
      );
      expect(stdout).toBe('202 {"id":"a1"}\n{"status":"completed","result":"label of lamp"}\n');
      expect(signal).toBe("SIGTERM");
      expect(leftIn(folder)).toEqual(["app.db"]);
    }));
});
