import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PeerSocket, rungText } from "./peer-socket.ts";

/** Both ends of a local socket, as two processes would have them. */
async function withEnds(body: (near: Socket, far: Socket) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  const server = createServer({ pauseOnConnect: true });
  server.listen(join(folder, "a.sock"));
  await once(server, "listening");
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const near = connect(join(folder, "a.sock"));
  const [far] = await accepted;
  try {
    await body(near, far);
  } finally {
    near.destroy();
    far.destroy();
    server.close();
    rmSync(folder, { recursive: true });
  }
}

test("a peer that does not read costs little memory, and is told so when it reads again", () =>
  withEnds(async (near, far) => {
    let missed = 0;
    const peer = new PeerSocket(near, {
      onMessage: () => undefined,
      onMissed: () => (missed += 1),
      onClose: () => undefined,
    });
    peer.isListening = true;
    const rung = rungText([{ operation: "addNote", key: "k".repeat(500) }]);
    let keptBytes = 0;
    for (let round = 0; round < 20_000; round += 1) {
      peer.say({ waiting: true });
      peer.say({ hold: round % 2 === 0 });
      peer.ring(rung);
      keptBytes = Math.max(keptBytes, near.writableLength);
    }
    // About 12 MB were sent; a little more than 64 KiB of it is kept.
    expect(keptBytes).toBeGreaterThan(65_536);
    expect(keptBytes).toBeLessThan(2 * 65_536);
    expect(missed).toBe(0);
    far.resume();
    await once(near, "drain");
    expect(missed).toBe(1);
    expect(near.writableLength).toBe(0);
  }));

test("a peer that missed nothing is not told that it missed something", () =>
  withEnds(async (near, far) => {
    let missed = 0;
    const peer = new PeerSocket(near, {
      onMessage: () => undefined,
      onMissed: () => (missed += 1),
      onClose: () => undefined,
    });
    far.resume();
    peer.say({ waiting: true });
    const heard = once(far, "data");
    await heard;
    expect(missed).toBe(0);
  }));

test("a batch of 256 calls is rung by name, each change once, and a far larger one as an unnamed change", () => {
  const change = (key: number) => [
    { operation: "appendEvents", key: `run-${key}` },
    { operation: "execution.pending", key: "orders/fulfil" },
  ];
  const batch = Array.from({ length: 256 }, (_, key) => change(key)).flat();
  const { changes } = JSON.parse(rungText(batch)) as { changes: string[][] };
  expect(changes).toHaveLength(257);
  expect(changes[2]).toEqual(["appendEvents", "run-1"]);
  expect(rungText([])).toBe('{"changes":null}');
  const many = Array.from({ length: 4_000 }, (_, key) => change(key)).flat();
  expect(rungText(many)).toBe('{"changes":null}');
});
