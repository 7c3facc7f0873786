import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Meters } from "../meters.ts";
import { loadDriver } from "./drivers/drivers.ts";
import { LogFlusher } from "./write/flusher.ts";
import { LogThread } from "./log/log-thread.ts";

const fault = vi.hoisted(() => ({ kind: "none" }));

/** Simulates a system that cannot start a thread, or ends one as it starts. */
vi.mock("node:worker_threads", async (original) => {
  const real = await original<typeof import("node:worker_threads")>();
  class Worker extends real.Worker {
    constructor(...[file, options]: ConstructorParameters<typeof real.Worker>) {
      if (fault.kind === "refused")
        throw Object.assign(new Error("Worker initialization failure: EAGAIN"), {
          code: "ERR_WORKER_INIT_FAILED",
        });
      if (fault.kind === "dies") super("process.exit(1)", { eval: true });
      else super(file, options);
    }
  }
  return { ...real, Worker };
});

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-thread-"));
  path = join(folder, "a.db");
});

afterEach(() => {
  fault.kind = "none";
  rmSync(folder, { recursive: true });
});

describe("a thread for flushes that cannot be started", () => {
  test("fails the flush and every later one, and can be closed", async () => {
    writeFileSync(path, "");
    writeFileSync(`${path}-wal`, "");
    const flusher = new LogFlusher(
      path,
      new Meters(),
      {
        now: () => undefined,
        atCommit: () => undefined,
        succeeded: () => undefined,
        isDurable: () => false,
      },
      { place: "thread", readOnly: false },
    );
    fault.kind = "refused";
    const failed = {
      code: "FLUSH_FAILED",
      details: { reason: "Worker initialization failure: EAGAIN" },
    };
    await expect(flusher.flush()).rejects.toMatchObject(failed);
    fault.kind = "none";
    await expect(flusher.flush()).rejects.toMatchObject(failed);
    await flusher.close();
  });
});

describe("a thread of the log", () => {
  const begin = {
    mode: "EXECUTE",
    statements: [{ text: "BEGIN", parameters: [], returnsRows: false }],
  };

  test("that cannot be started is reported as a failure, and started by the next request", async () => {
    const thread = new LogThread(loadDriver(undefined), path, 20);
    fault.kind = "refused";
    expect(await thread.ask(begin)).toEqual({
      failure: {
        message:
          "the thread of the log could not be started: Worker initialization failure: EAGAIN",
      },
    });
    fault.kind = "none";
    expect(await thread.ask(begin)).toEqual({ value: [] });
    await thread.close();
  });

  test("that died before it opened anything is started by the next request", async () => {
    const thread = new LogThread(loadDriver(undefined), path, 20);
    fault.kind = "dies";
    expect(await thread.ask(begin)).toEqual({
      failure: { message: "the thread of the log has ended" },
    });
    fault.kind = "none";
    expect(await thread.ask(begin)).toEqual({ value: [] });
    await thread.close();
    expect(await thread.ask(begin)).toMatchObject({
      failure: { message: "the thread of the log has ended" },
    });
  });
});
