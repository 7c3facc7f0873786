import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { delayId, splitDelayId } from "../../src/model/ids/delay-id.ts";
import { seededEntropy } from "../../src/model/entropy.ts";
import {
  increment,
  nextLevel,
  parseExecutionId,
  splitToParts,
} from "../../src/model/ids/execution-id.ts";
import { executionSeed } from "../../src/model/execution/seed.ts";
import { parseFunctionName } from "../../src/model/ids/function-name.ts";
import { idSource } from "../../src/model/ids/id-source.ts";
import {
  generatedJoinSet,
  namedJoinSet,
  oneOffJoinSet,
  parseJoinSetId,
} from "../../src/model/ids/join-set-id.ts";
import { parseExecutorId } from "../../src/model/ids/prefixed-id.ts";
import {
  decodeResult,
  encodeResult,
  type ExecutionResult,
} from "../../src/model/execution/result.ts";
import { resolveStartAt } from "../../src/model/time/instants.ts";

const topText = "E_01HF7YAT00ABCDEFGHJKMNPQRS";
const top = parseExecutionId(topText);

function throwing(code: string, reason?: string): unknown {
  const details = reason && { details: expect.objectContaining({ reason }) };
  return expect.objectContaining({ code, ...details });
}

describe("identifiers and small values", () => {
  test("[E1] minted executor and execution ids survive being written as text", () => {
    const ids = idSource({
      clock: manualClock(1_700_000_000_000),
      entropy: seededEntropy(1),
    });
    const executor = ids.nextId("Exr");
    const execution = ids.nextId("E");
    expect(executor).toMatch(/^Exr_01HF7YAT00[0-9A-Z]{16}$/);
    expect(execution).toMatch(/^E_01HF7YAT00[0-9A-Z]{16}$/);
    expect(parseExecutorId(String(executor))).toBe(executor);
    expect(parseExecutionId(String(execution))).toBe(execution);
  });

  test("[E2] the children of a join set are numbered from 1 in their ids", () => {
    const first = nextLevel(top, namedJoinSet("name"));
    expect(first).toBe(`${topText}.n:name_1`);
    expect(increment(first)).toBe(`${topText}.n:name_2`);
    expect(parseExecutionId(`${topText}.n:name_1`)).toBe(first);
    expect(parseExecutionId(`${topText}.n:name_2`)).toBe(increment(first));
  });

  test("[E3] a grandchild's id names both join sets and parses back", () => {
    const child = increment(nextLevel(top, parseJoinSetId("g:gg")));
    const grandchild = increment(nextLevel(child, parseJoinSetId("o:oo")));
    expect(grandchild).toBe(`${topText}.g:gg_2.o:oo_2`);
    expect(parseExecutionId(`${topText}.g:gg_2.o:oo_2`)).toBe(grandchild);
  });

  test("[E4] an id tells its parent and join set, at every level", () => {
    const first = nextLevel(top, namedJoinSet("name"));
    for (const child of [first, increment(first)]) {
      expect(splitToParts(child)).toMatchObject({
        parent: topText,
        joinSet: "n:name",
      });
      expect(splitToParts(nextLevel(child, oneOffJoinSet(7)))).toEqual({
        parent: child,
        joinSet: "o:7",
        index: 1,
      });
    }
    expect(splitToParts(top)).toBeUndefined();
    expect(splitDelayId(delayId(first, oneOffJoinSet(7), 1))).toEqual({
      execution: first,
      joinSet: "o:7",
      index: 1,
    });
  });

  test("[E5] a broken path is refused; a wrong prefix and a bad ULID differ", () => {
    expect(() => parseExecutionId(`${topText}.g:gg._2.o:oo_2`)).toThrow(
      throwing("ID_MALFORMED", "segment"),
    );
    // Any text may be a caller's own key, so only ids that start with "E_"
    // promise a ULID.
    expect(() => parseExecutionId("E_01HF7YAT00")).toThrow(throwing("ID_MALFORMED", "ulid"));
    expect(() => parseExecutorId("Exr_01HF7YAT00")).toThrow(throwing("ID_MALFORMED", "ulid"));
    expect(() => parseExecutorId(topText)).toThrow(throwing("ID_MALFORMED", "prefix"));
  });

  test("[E6] parent, siblings and grandchild draw from four different, pinned seeds", () => {
    const first = nextLevel(top, namedJoinSet("name"));
    const second = increment(first);
    const grandchild = nextLevel(first, generatedJoinSet(1));
    // Computed by an independent implementation of the hash.
    expect([top, first, second, grandchild].map(executionSeed)).toEqual([
      0xd3e6_b794_bd63_6be3n,
      0x99a6_ba7b_738a_87e6n,
      0xa086_763e_4dc9_8bbbn,
      0x6dcf_2247_3526_7c08n,
    ]);
  });

  test("[E7] join set ids of every kind survive JSON, and odd names are refused", () => {
    const sets = [oneOffJoinSet(7), namedJoinSet("a/b-c"), generatedJoinSet(1)];
    const text = JSON.stringify(sets);
    expect(text).toBe('["o:7","n:a/b-c","g:1"]');
    expect((JSON.parse(text) as string[]).map(parseJoinSetId)).toEqual(sets);
    for (const name of ["", "a_b", "a.b", "a:b", "ä", "x".repeat(65)]) {
      expect(() => namedJoinSet(name)).toThrow(throwing("NAME_INVALID"));
      expect(() => parseJoinSetId(`n:${name}`)).toThrow(throwing("ID_MALFORMED", "joinSet"));
    }
  });

  test("[E8] function names are paths of letters, digits, underscores and dashes", () => {
    for (const name of ["orders/fulfil", "run", "a_b-C/9", "x".repeat(128)]) {
      expect(parseFunctionName(name)).toBe(name);
    }
    for (const name of ["", "cli/run@0.2.0.run", "a:b", "x".repeat(129)]) {
      expect(() => parseFunctionName(name)).toThrow(throwing("NAME_INVALID"));
    }
  });

  test("[E9] a start 2^32 - 1 seconds after 1970 lies in 2106; one beyond all dates is refused", () => {
    const instant = resolveStartAt({ in: "4294967295 s" }, 0);
    expect(new Date(instant).toISOString()).toBe("2106-02-07T06:28:15.000Z");
    expect(() => resolveStartAt({ in: 8.64e15 }, 1)).toThrow(throwing("TIME_OUT_OF_RANGE"));
    expect(() => resolveStartAt({ in: "9007199254740991 s" }, 0)).toThrow(
      throwing("DURATION_INVALID"),
    );
  });

  test("[E10] every kind of result survives JSON, and no value is not null", () => {
    const results: ExecutionResult[] = [
      { kind: "completed", value: { b: 1, a: [2] } },
      { kind: "completed", value: null },
      { kind: "completed", value: undefined },
      { kind: "failed", error: { name: "TypeError", message: "m", code: 7 } },
      { kind: "cancelled" },
      { kind: "cancelled", reason: "no longer needed" },
      { kind: "timedOut" },
    ];
    for (const result of results) {
      const text = encodeResult(result);
      expect(() => JSON.parse(text) as unknown).not.toThrow();
      expect(decodeResult(text)).toStrictEqual(result);
    }
  });
});
