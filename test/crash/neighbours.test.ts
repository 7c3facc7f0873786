import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { OwnerId } from "../../src/kernel.ts";
import { addNote, createNoteTable, noteHalves } from "../conformance/notes.ts";
import { until } from "../conformance/runtime/waiting.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { Neighbour, withFile } from "./neighbours.ts";

const canUnshare = spawnSync("unshare", ["--pid", "--fork", "true"]).status === 0;

describe("processes on one file", () => {
  test("hear of each other's changes by name, which only those who made them can tell", () =>
    withFile(async (_, start) => {
      const [a, b] = [await start(), await start()];
      await a.write("one");
      await b.until(() => b.heardKeys.includes("one"));
      await b.write("two");
      await a.until(() => a.heardKeys.includes("two"));
      expect(a.heardKeys).toEqual(["one", "two"]);
      expect(b.heardKeys).toEqual(["one", "two"]);
      // Their number of polls tells nothing: a ring may come later than one.
      const stats = await b.stats();
      expect(stats?.peers.connected).toBe(1);
      expect(stats?.peers.unavailable).toBeUndefined();
    }));

  test(`lose no wake-up over ${isDeep ? 1_000 : 20} rounds under load`, () =>
    withFile(async (_, start) => {
      const [a, b] = [await start(), await start()];
      const load = new Child("busy-loop.ts", []);
      try {
        const rounds = isDeep ? 1_000 : 20;
        for (let round = 0; round < rounds; round += 1) {
          await a.write(`r${round}`);
          await b.until(() => b.heardKeys.includes(`r${round}`));
        }
        // By name, so each was told by the one who wrote it and found by no poll.
        expect(b.heardKeys).toHaveLength(rounds);
      } finally {
        load.kill();
        await load.ended;
      }
    }));

  test("hear of a write by somebody who does not ring, without a poll", () =>
    withFile(async (folder, start) => {
      const a = await start();
      expect(a.heardUnknown).toBe(0);
      let polls = 0;
      // The poll may be the first to see a write, when the machine is slow to
      // tell of the change to the folder. Without the watch it always would be.
      for (let round = 1; a.heardUnknown <= polls; round += 1) {
        folder.shell([`INSERT INTO app_note (id, half, body) VALUES ('shell ${round}', 1, NULL)`]);
        await a.until(() => a.heardUnknown >= round);
        polls = (await a.stats())?.polls ?? Number.NaN;
      }
      expect(a.heardUnknown).toBeGreaterThan(polls);
    }));

  test("know who is alive, and take an orderly end for no death", () =>
    withFile(async (_, start) => {
      const [a, b] = [await start(), await start()];
      const owner = await b.owner();
      expect(await a.liveness(owner)).toBe("alive");
      b.child.tell("close");
      expect(await b.child.ended).toBe(0);
      expect(await a.liveness(owner)).toBe("unknown");
      expect(a.heardDeaths).toEqual([]);
    }));

  test("take a process that ended without closing for dead", () =>
    withFile(async (_, start) => {
      const [a, b] = [await start(), await start()];
      const owner = await b.owner();
      b.child.tell("leave");
      await a.until(() => a.heardDeaths.length > 0);
      expect(a.heardDeaths).toEqual([owner]);
      expect(await a.liveness(owner)).toBe("dead");
    }));

  const many = isDeep ? 16 : 6;

  test(`of ${many} processes killed at once every survivor hears, and nothing of them is left`, () =>
    withFile(async (folder, start) => {
      const survivors = [await start(), await start(), await start()];
      const doomed = await Promise.all(Array.from({ length: many }, () => start()));
      const owners = await Promise.all(doomed.map((one) => one.owner()));
      const signals = ["SIGKILL", "SIGABRT", "SIGSEGV"] as const;
      for (const [index, { child }] of doomed.entries())
        child.process.kill(signals[index % signals.length]);
      for (const survivor of survivors) {
        await survivor.until(() => survivor.heardDeaths.length >= many);
        expect([...survivor.heardDeaths].toSorted()).toEqual([...owners].toSorted());
      }
      expect(readdirSync(`${folder.file()}-owners`)).toHaveLength(3);
    }));

  test("a stopped process is not dead; killed, it is", () =>
    withFile(async (_, start) => {
      const [a, b] = [await start(), await start()];
      const owner = await b.owner();
      b.child.process.kill("SIGSTOP");
      expect(await a.liveness(owner)).toBe("alive");
      b.child.kill();
      await a.until(() => a.heardDeaths.length > 0);
      expect(a.heardDeaths).toEqual([owner]);
    }));

  test("a zombie is dead", () =>
    withFile(async (_, start) => {
      const a = await start();
      // The shell becomes `sleep`, which never asks how its child ended.
      const zombie = await start([
        "sh",
        "-c",
        '"$0" "$@" <&0 & echo "{\\"pid\\":$!}"; exec sleep 60',
      ]);
      const pid = await zombie.pid();
      process.kill(pid, "SIGKILL");
      await a.until(() => a.heardDeaths.length > 0);
      expect(a.heardDeaths).toEqual([await zombie.owner()]);
      expect(process.kill(pid, 0)).toBe(true);
    }));

  test.runIf(canUnshare)("a process in another pid namespace is judged like any other", () =>
    withFile(async (_, start) => {
      const a = await start();
      const b = await start(["unshare", "--pid", "--fork", "--kill-child"]);
      const owner = await b.owner();
      expect(await a.liveness(owner)).toBe("alive");
      await b.write("from-afar");
      await a.until(() => a.heardKeys.includes("from-afar"));
      b.child.kill();
      await a.until(() => a.heardDeaths.length > 0);
      expect(a.heardDeaths).toEqual([owner]);
    }),
  );

  test("workers of a cluster have sockets of their own", () =>
    withFile(async (folder) => {
      const primary = new Child("cluster-primary.ts", [folder.file()]);
      expect(await primary.ended).toBe(0);
      expect(primary.lines).toEqual(["heard of the death"]);
    }));

  test("a fork inherits nothing: it lives on while its parent is proven dead", () =>
    withFile(async (folder, start) => {
      const a = await start();
      const parent = new Child("forking-parent.ts", [folder.file()]);
      await parent.reported(1);
      const { owner, childOwner, childPid } = JSON.parse(parent.lines[0] ?? "{}") as {
        owner: OwnerId;
        childOwner: OwnerId;
        childPid: number;
      };
      try {
        parent.kill();
        await a.until(() => a.heardDeaths.length > 0);
        expect(a.heardDeaths).toEqual([owner]);
        expect(await a.liveness(childOwner)).toBe("alive");
      } finally {
        process.kill(childPid, "SIGKILL");
      }
      await a.until(() => a.heardDeaths.length > 1);
      expect(a.heardDeaths).toEqual([owner, childOwner]);
    }));

  test("an owner nobody knows is unknown", () =>
    withFile(async (_, start) => {
      const a = await start();
      expect(await a.liveness("Own_01ARZ3NDEKTSV4RRFFQ69G5FAV" as never)).toBe("unknown");
    }));

  test("after all were killed, the next to open clears up and knows that they are dead", () =>
    withFile(async (folder, start) => {
      const doomed = [await start(), await start()];
      const owners = await Promise.all(doomed.map((one) => one.owner()));
      for (const { child } of doomed) child.kill();
      await Promise.all(doomed.map(({ child }) => child.ended));
      const database = await folder.open();
      for (const owner of owners) expect(await database.liveness(owner)).toBe("dead");
      expect(readdirSync(`${folder.file()}-owners`)).toEqual([`${database.owner}.lock`]);
      await database.close();
      expect(existsSync(`${folder.file()}-owners`)).toBe(false);
    }));

  test("who closes at the moment another one was killed leaves nothing of either", () =>
    withFile(async (folder, start) => {
      const database = await folder.open();
      const killed = await start();
      const sockets = [database.owner, await killed.owner()].map((owner) =>
        socketOf(owner, folder.file()),
      );
      expect(sockets.map((file) => existsSync(file))).toEqual([true, true]);
      killed.child.kill();
      // Without a turn of the event loop, in which the death would be heard.
      const pause = new Int32Array(new SharedArrayBuffer(4));
      while (!isZombie(killed.child.process.pid)) Atomics.wait(pause, 0, 0, 5);
      await database.close();
      expect(sockets.map((file) => existsSync(file))).toEqual([false, false]);
      expect(existsSync(`${folder.file()}-owners`)).toBe(false);
    }));
});

/** Where a process that has a file open listens. */
function socketOf(owner: OwnerId, file: string): string {
  const { dev, ino } = statSync(file, { bigint: true });
  const hash = createHash("sha256").update(`${dev}:${ino}`).digest("hex");
  return join(tmpdir(), `hf-${hash.slice(0, 16)}`, `${owner}.sock`);
}

/** Whether nothing of a process is left but its name: its threads, which share its locks, may outlive the first one. */
function isZombie(pid: number | undefined): boolean {
  const isEnded = / Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  return isEnded && readdirSync(`/proc/${pid}/task`).length === 1;
}

describe("where peers cannot be reached", () => {
  test.each([
    ["the path of a socket would be too long", "x".repeat(90)],
    ["the folder cannot be made", "app.db"],
  ])("because %s, the watch tells, and stats say why", (_, base) =>
    withFolder(async (folder) => {
      const seams = { socketBase: folder.file(base) };
      const a = await folder.open({}, seams);
      const b = await folder.open({}, seams);
      await a.write("tables", createNoteTable);
      const heard: string[] = [];
      b.subscribe((hint) => heard.push(hint.kind));
      // The poll may be the first to see a write, when the machine is slow to
      // tell of the change to the folder. Without the watch it always would be.
      for (let round = 1; heard.length <= b.stats().polls; round += 1) {
        await a.write(addNote, { id: String(round) });
        await until(() => heard.length >= round);
      }
      expect(new Set(heard)).toEqual(new Set(["unknown"]));
      expect(b.stats().peers.connected).toBe(0);
      expect(b.stats().peers.unavailable).toMatch(/path of a socket|app\.db/);
    }),
  );
});

describe("after a crash", () => {
  test("a database opens, knows the dead and clears up, even where there can be no sockets", () =>
    withFile(async (folder, start) => {
      const neighbour = await start();
      const owner = await neighbour.owner();
      await neighbour.write("kept");
      neighbour.child.kill();
      await neighbour.child.ended;
      const database = await folder.open({}, { socketBase: folder.file("app.db") });
      expect(database.stats().peers.unavailable).toContain("app.db");
      expect(await database.liveness(owner)).toBe("dead");
      expect(readdirSync(`${folder.file()}-owners`)).toEqual([`${database.owner}.lock`]);
      await database.write(addNote, { id: "new" });
      expect(await noteHalves(database)).toBe("kept1 kept2 new1 new2");
    }));
});

describe("what a peer may meet", () => {
  test("a stranger on its socket is hung up on, and does no harm", () =>
    withFolder(async (folder) => {
      const seams = { socketBase: folder.path };
      const database = await folder.open({}, seams);
      const [sockets = ""] = readdirSync(folder.path).filter((name) => name.startsWith("hf-"));
      const socket = join(folder.path, sockets, `${database.owner}.sock`);
      for (const nonsense of [
        "GET / HTTP/1.1\r\n\r\n",
        '{"hello":"nobody"}\n',
        '{"changes":[5]}\n',
        '{"changes":[[1,2]]}\n',
        '{"changes":[["addNote"]]}\n',
        '{"hold":"yes"}\n',
        '{"listening":1}\n',
        '"text"\n',
      ]) {
        const stranger = connect(socket);
        stranger.on("error", () => undefined);
        stranger.write(nonsense);
        stranger.resume();
        await once(stranger, "close");
      }
      await database.write("tables", createNoteTable);
      expect(database.stats().peers.connected).toBe(0);
    }));

  test("a socket and a lock file that nobody holds are cleared away", () =>
    withFolder(async (folder) => {
      await (await folder.open()).close();
      const stale = "Own_01ARZ3NDEKTSV4RRFFQ69G5FAV";
      mkdirSync(`${folder.file()}-owners`);
      writeFileSync(join(`${folder.file()}-owners`, `${stale}.lock`), "");
      const database = await folder.open();
      expect(readdirSync(`${folder.file()}-owners`)).toEqual([`${database.owner}.lock`]);
    }));

  test("a socket that a killed process left on a file that is gone is cleared away", () =>
    withFile(async (folder, start) => {
      const killed = await start();
      const left = socketOf(await killed.owner(), folder.file());
      killed.child.kill();
      await killed.child.ended;
      // As if another file had its number now: nothing beside it tells of the dead.
      rmSync(`${folder.file()}-owners`, { recursive: true });
      expect(existsSync(left)).toBe(true);
      const database = await folder.open();
      await until(() => !existsSync(left));
      await database.close();
    }));

  test("whoever begins to listen is told that it may have missed something", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      const neighbour = await Neighbour.start(folder.file());
      const first = new Promise<string>((resolve) => {
        database.subscribe((hint) => resolve(hint.kind));
      });
      expect(await first).toBe("unknown");
      expect(database.stats().polls).toBe(0);
      neighbour.child.kill();
      await neighbour.child.ended;
    }));

  test("without sockets a death is found by looking around", () =>
    withFolder(async (folder) => {
      const database = await folder.open({}, { socketBase: folder.file("x".repeat(90)) });
      const died = new Promise<string>((resolve) => {
        database.subscribe((hint) => {
          if (hint.kind === "death") resolve(hint.owner);
        });
      });
      const neighbour = await Neighbour.start(folder.file());
      const owner = await neighbour.owner();
      neighbour.child.kill();
      expect(await died).toBe(owner);
    }));

  test("a stopped peer does not keep a database from closing", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      const neighbour = await Neighbour.start(folder.file());
      neighbour.child.process.kill("SIGSTOP");
      await database.close();
      const { pid } = neighbour.child.process;
      expect(process.kill(pid ?? Number.NaN, 0)).toBe(true);
      neighbour.child.kill();
      await neighbour.child.ended;
    }));
});
