import { describe, expect, test } from "vitest";
import { delayId, parseDelayId, splitDelayId } from "./delay-id.ts";
import { parseExecutionId } from "./execution-id.ts";
import { oneOffJoinSet } from "./join-set-id.ts";

const ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

describe("a delay id", () => {
  test.each([
    [`E_${ulid}`, `Delay_E_${ulid}.o:7_1`],
    ["order-42", "Delay_order-42.o:7_1"],
    ["order-42.n:payments_2", "Delay_order-42.n:payments_2.o:7_1"],
  ])("of %s is %s, and splits again", (execution, text) => {
    const id = delayId(parseExecutionId(execution), oneOffJoinSet(7), 1);
    expect(id).toBe(text);
    expect(parseDelayId(text)).toBe(text);
    expect(splitDelayId(id)).toEqual({ execution, joinSet: "o:7", index: 1 });
  });

  test("tells an execution keyed by a bare ULID from the one minted with it", () => {
    const minted = delayId(parseExecutionId(`E_${ulid}`), oneOffJoinSet(1), 1);
    const keyed = delayId(parseExecutionId(ulid), oneOffJoinSet(1), 1);
    expect(minted).not.toBe(keyed);
    expect(splitDelayId(keyed).execution).toBe(ulid);
  });

  test("is never an execution id", () => {
    expect(() => parseExecutionId("Delay_order-42.o:7_1")).toThrow(
      expect.objectContaining({
        details: expect.objectContaining({ reason: "prefix" }),
      }),
    );
  });

  test("exists for an execution at the length limit, too", () => {
    const levels = `${".n:abcd_1".repeat(54)}.n:abcdefghijklm_1`;
    const longest = parseExecutionId(`order-42${levels}`);
    const id = delayId(longest, oneOffJoinSet(7), 1);
    expect(parseDelayId(String(id))).toBe(id);
  });

  test.each([
    ["order-42.o:7_1", "prefix"],
    [`E_${ulid}.o:7_1`, "prefix"],
    ["Delay_order-42", "segment"],
    ["Delay_order-42.o:7", "segment"],
    ["Delay_order-42.x:7_1", "joinSet"],
    ["Delay_order-42.o:7_0", "index"],
    ["Delay_.o:7_1", "length"],
    ["Delay_E_bad.o:7_1", "ulid"],
    ["Delay_Delay_a.o:7_1", "prefix"],
  ])("is not %s, because of its %s", (text, reason) => {
    expect(() => parseDelayId(text)).toThrow(
      expect.objectContaining({
        code: "ID_MALFORMED",
        details: expect.objectContaining({ reason }),
      }),
    );
  });
});
