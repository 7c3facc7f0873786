import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { manualClock } from "../time/clock.ts";
import { seededEntropy, type Entropy } from "../entropy.ts";
import { idSource } from "./id-source.ts";

const constant = (byte: number): Entropy => ({
  bytes: (length) => new Uint8Array(length).fill(byte),
});

describe("minting ids", () => {
  test("joins the prefix with a ULID of the clock's time", () => {
    const ids = idSource({
      clock: manualClock(1_000),
      entropy: seededEntropy(7),
    });
    // Computed by an independent implementation from the seed's pinned bytes.
    expect(ids.nextId("E")).toBe("E_00000000Z8BDCETTG0GBZQC8PA");
  });

  test("counts up within a millisecond, across prefixes", () => {
    const ids = idSource({ clock: manualClock(0), entropy: constant(0) });
    expect(ids.nextId("E")).toBe("E_00000000000000000000000000");
    expect(ids.nextId("Exr")).toBe("Exr_00000000000000000000000001");
    expect(ids.nextId("Run")).toBe("Run_00000000000000000000000002");
    expect(ids.nextId("Dep")).toBe("Dep_00000000000000000000000003");
  });

  test("carries from byte to byte", () => {
    const entropy: Entropy = {
      bytes: () => Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff),
    };
    const ids = idSource({ clock: manualClock(0), entropy });
    expect(ids.nextId("E")).toBe("E_00000000000000000000001ZZZ");
    expect(ids.nextId("E")).toBe("E_00000000000000000000002000");
  });

  test("moves to the next millisecond when the random part overflows", () => {
    const ids = idSource({ clock: manualClock(5), entropy: constant(0xff) });
    expect(ids.nextId("E")).toBe("E_0000000005ZZZZZZZZZZZZZZZZ");
    expect(ids.nextId("E")).toBe("E_0000000006ZZZZZZZZZZZZZZZZ");
  });

  test("keeps counting at the last time when the clock is set back", () => {
    const clock = manualClock(9);
    const ids = idSource({ clock, entropy: constant(0) });
    expect(ids.nextId("E")).toBe("E_00000000090000000000000000");
    clock.set(2);
    expect(ids.nextId("E")).toBe("E_00000000090000000000000001");
    clock.set(10);
    expect(ids.nextId("E")).toBe("E_000000000A0000000000000000");
  });
});

test("ids only grow, whatever the clock does", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(3), { maxLength: 50 }), fc.nat(255), (instants, byte) => {
      const clock = manualClock(0);
      const ids = idSource({ clock, entropy: constant(byte) });
      let last = "";
      for (const instant of instants) {
        clock.set(instant);
        const id = ids.nextId("E");
        expect(id > last).toBe(true);
        last = id;
      }
    }),
  );
});
