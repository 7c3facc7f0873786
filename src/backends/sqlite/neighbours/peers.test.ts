import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../host/clock.ts";
import { systemEntropy } from "../../../host/entropy.ts";
import { idSource } from "../../../model/ids/id-source.ts";
import { Peers } from "./peers.ts";

const owners = idSource({ clock: systemClock, entropy: systemEntropy });

/** The events at all peers, in order, and a way to wait for them. */
class Diary {
  readonly lines: string[] = [];
  #wake: (() => void) | undefined;

  note(line: string): void {
    this.lines.push(line);
    this.#wake?.();
  }

  async until(isFulfilled: (lines: readonly string[]) => boolean) {
    while (!isFulfilled(this.lines)) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}

/** Opens peers on real sockets. Peers named in `waiting` take the turn they are given. */
async function withPeers(
  names: readonly string[],
  body: (peers: Peers[], diary: Diary, waiting: Set<string>) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  const database = join(folder, "app.db");
  writeFileSync(database, "");
  const diary = new Diary();
  const waiting = new Set(names);
  const peers = names.map(
    (name) =>
      new Peers(
        database,
        owners.nextId("Own"),
        {
          onRing: () => diary.note(`${name} heard a ring`),
          onFree: () => {
            diary.note(`${name} was given a turn`);
            return waiting.has(name);
          },
          onHold: () => {
            diary.note(`${name} holds`);
            return () => diary.note(`${name} continues`);
          },
          onGone: () => diary.note(`${name} lost somebody`),
        },
        folder,
      ),
  );
  try {
    for (const one of peers) await one.start();
    await allMet(peers);
    await body(peers, diary, waiting);
  } finally {
    for (const one of peers) await one.close({ sayBye: true });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Waits until all peers have greeted each other. */
async function allMet(peers: readonly Peers[]): Promise<void> {
  while (peers.some((one) => one.connected.length < peers.length - 1))
    await new Promise((resolve) => setImmediate(resolve));
}

describe("turns at the write lock", () => {
  test("go to the longest waiter, and each peer is told once per request", () =>
    withPeers(["a", "b", "c"], async ([a, b, c], diary) => {
      // B's requests come before C's: C asks when A's answer has reached B.
      b?.wait();
      b?.wait();
      while (a?.free() === false) await new Promise((resolve) => setImmediate(resolve));
      await diary.until((lines) => lines.includes("b was given a turn"));
      expect(a?.free()).toBe(false);
      c?.wait();
      b?.wait();
      while (a?.free() === false) await new Promise((resolve) => setImmediate(resolve));
      while (a?.free() === false) await new Promise((resolve) => setImmediate(resolve));
      await diary.until((lines) => lines.length === 3);
      expect(diary.lines.toSorted()).toEqual([
        "b was given a turn",
        "b was given a turn",
        "c was given a turn",
      ]);
      expect(a?.free()).toBe(false);
    }));

  test("that come too late are passed on to the next waiter", () =>
    withPeers(["a", "b", "c"], async ([a, b, c], diary, waiting) => {
      b?.wait();
      c?.wait();
      while (a?.free() === false) await new Promise((resolve) => setImmediate(resolve));
      await diary.until((lines) => lines.length > 0);
      const [first = ""] = diary.lines;
      // The peer that was not told yet waits no longer, and passes its turn to the other.
      const [late, other] = first.startsWith("b") ? ["c", b] : ["b", c];
      waiting.delete(late);
      other?.wait();
      while (a?.free() === false) await new Promise((resolve) => setImmediate(resolve));
      await diary.until((lines) => lines.length >= 3);
      expect(diary.lines.slice(0, 3)).toEqual([first, `${late} was given a turn`, first]);
    }));
});

describe("a hold", () => {
  test("ends by itself, and asking again does not prolong it until it was taken back", () =>
    withPeers(["a", "b"], async ([a], diary) => {
      const asking = setInterval(() => a?.hold(true), 5);
      await diary.until((lines) => lines.includes("b continues"));
      clearInterval(asking);
      expect(diary.lines).toEqual(["b holds", "b continues"]);
      a?.hold(true);
      a?.hold(false);
      a?.hold(true);
      await diary.until((lines) => lines.length >= 4);
      expect(diary.lines).toEqual(["b holds", "b continues", "b holds", "b continues"]);
    }));
});
