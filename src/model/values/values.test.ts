import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { decodeValue, encodeValue } from "./values.ts";

function ownProto(value: unknown): unknown {
  return Object.defineProperty({}, "__proto__", {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

// These texts are on users' disks: a change here is a change of format.
const golden: [string, unknown, string][] = [
  ["null", null, "null"],
  ["text", 'é"\n', '"é\\"\\n"'],
  ["a number", -1.5e300, "-1.5e+300"],
  ["keys in insertion order", { b: 1, a: [true] }, '{"b":1,"a":[true]}'],
  ["undefined", undefined, '{"$holdfast":"undefined"}'],
  ["undefined in an object", { a: undefined }, '{"a":{"$holdfast":"undefined"}}'],
  ["undefined in an array", [undefined], '[{"$holdfast":"undefined"}]'],
  [
    "a date",
    new Date(1_767_323_045_678),
    '{"$holdfast":"date","value":"2026-01-02T03:04:05.678Z"}',
  ],
  [
    "the last date",
    new Date(8.64e15),
    '{"$holdfast":"date","value":"+275760-09-13T00:00:00.000Z"}',
  ],
  ["a bigint", -(2n ** 64n), '{"$holdfast":"bigint","value":"-18446744073709551616"}'],
  ["zero as a bigint", 0n, '{"$holdfast":"bigint","value":"0"}'],
  ["bytes", Uint8Array.of(0, 255, 16), '{"$holdfast":"bytes","value":"AP8Q"}'],
  ["no bytes", new Uint8Array(), '{"$holdfast":"bytes","value":""}'],
  [
    "a map",
    new Map<unknown, unknown>([
      ["b", 1],
      [{ k: 1n }, undefined],
    ]),
    '{"$holdfast":"map","value":[["b",1],[{"k":{"$holdfast":"bigint","value":"1"}},{"$holdfast":"undefined"}]]}',
  ],
  ["a set", new Set([2, 1]), '{"$holdfast":"set","value":[2,1]}'],
  ["an empty map", new Map(), '{"$holdfast":"map","value":[]}'],
  ["an own __proto__", ownProto(1), '{"__proto__":1}'],
  [
    "an own __proto__ with a tag",
    ownProto({ a: 1n }),
    '{"__proto__":{"a":{"$holdfast":"bigint","value":"1"}}}',
  ],
  // The escape rule.
  [
    "a user's object that looks like a tag",
    { $holdfast: "date", value: "2026-01-02T03:04:05.678Z" },
    '{"$holdfast":"object","value":{"$holdfast":"date","value":"2026-01-02T03:04:05.678Z"}}',
  ],
  [
    "a user's object that looks like the escape",
    { $holdfast: "object", value: { $holdfast: 1 } },
    '{"$holdfast":"object","value":{"$holdfast":"object","value":{"$holdfast":"object","value":{"$holdfast":1}}}}',
  ],
  [
    "a marker among other keys, over a date",
    { a: 1, $holdfast: new Date(0) },
    '{"$holdfast":"object","value":{"a":1,"$holdfast":{"$holdfast":"date","value":"1970-01-01T00:00:00.000Z"}}}',
  ],
  ["the marker as text", ["$holdfast"], '["$holdfast"]'],
];

describe("values and their text", () => {
  test.each(golden)("%s is written as pinned", (_, value, text) => {
    expect(encodeValue(value)).toBe(text);
  });

  test.each(golden)("%s is read back", (_, value, text) => {
    expect(decodeValue(text)).toStrictEqual(value);
  });
});

describe("errors", () => {
  test("are kept by name, message, code, stack and cause", () => {
    const error = Object.assign(new TypeError("bad", { cause: "why" }), {
      code: "E_BAD",
      socket: {},
    });
    error.stack = "TypeError: bad\n    at user.ts:1:1";
    const text =
      '{"$holdfast":"error","value":{"name":"TypeError","message":"bad","code":"E_BAD",' +
      '"stack":"TypeError: bad\\n    at user.ts:1:1","cause":{"name":"NonError","message":"why"}}}';
    expect(encodeValue(error)).toBe(text);
    const back = decodeValue(text) as TypeError;
    expect(back).toBeInstanceOf(TypeError);
    expect(back).toMatchObject({ message: "bad", code: "E_BAD" });
    expect(back.stack).toBe("TypeError: bad\n    at user.ts:1:1");
  });

  test("of the platform are errors too", () => {
    const { reason } = AbortSignal.abort();
    expect(decodeValue(encodeValue(reason))).toMatchObject({
      name: "AbortError",
      message: "This operation was aborted",
    });
  });
});

describe("what comes back as something simpler", () => {
  test.each<[string, unknown, unknown]>([
    ["-0 as 0", [-0], [0]],
    ["a Buffer as bytes", Buffer.from([1]), Uint8Array.of(1)],
    ["an object without prototype", Object.assign(Object.create(null), { a: 1n }), { a: 1n }],
    ["an array with other properties", Object.assign([1n], { index: 0 }), [1n]],
    ["a toJSON of an array", Object.assign([1], { toJSON: () => 2 }), [1]],
  ])("%s", (_, value, back) => {
    expect(decodeValue(encodeValue(value))).toStrictEqual(back);
  });

  test("a date made under fake timers, which replace the class", () => {
    vi.useFakeTimers({ now: 5 });
    const fake = new Date();
    vi.useRealTimers();
    expect(decodeValue(encodeValue(fake))).toStrictEqual(new Date(5));
  });

  test("shared parts as copies", () => {
    const shared = { a: 1n };
    const back = decodeValue(encodeValue([shared, shared])) as unknown[];
    expect(back).toStrictEqual([{ a: 1n }, { a: 1n }]);
    expect(back[0]).not.toBe(back[1]);
  });
});

describe("text as stored", () => {
  test("has neither U+0000 nor lone surrogates, and strings survive them", () => {
    const value = { "\u0000\ud800": ["a\u0000b", "\udfff", 1n] };
    const text = encodeValue(value);
    expect(text).toBe(
      '{"\\u0000\\ud800":["a\\u0000b","\\udfff",{"$holdfast":"bigint","value":"1"}]}',
    );
    expect(decodeValue(text)).toStrictEqual(value);
  });

  test("does not touch the prototype of anything", () => {
    const back = decodeValue('{"__proto__":{"polluted":true},"a":{"$holdfast":"undefined"}}');
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
    expect(({} as { polluted?: true }).polluted).toBeUndefined();
    expect(Object.keys(back as object)).toEqual(["__proto__", "a"]);
  });
});

const plainData = fc.jsonValue({ noUnicodeString: false });

test("plain JSON is stored as JSON.stringify writes it", () => {
  fc.assert(
    fc.property(plainData, (value) => {
      expect(encodeValue(value)).toBe(JSON.stringify(value));
    }),
  );
});

const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    tie("leaf"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(
      fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("$holdfast", "value", "__proto__")),
      tie("value"),
      { maxKeys: 4, noNullPrototype: true },
    ),
    fc
      .array(fc.tuple(tie("value"), tie("value")), { maxLength: 3 })
      .map((entries) => new Map(entries)),
    fc.array(tie("value"), { maxLength: 3 }).map((items) => new Set(items)),
  ),
  leaf: fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("$holdfast", "date", "object", "undefined"),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n + 0),
    fc.boolean(),
    fc.constantFrom(null, undefined),
    fc.bigInt(),
    fc.date({ noInvalidDate: true }),
    fc.uint8Array({ maxLength: 8 }),
  ),
})).value;

test("every storable value survives", () => {
  fc.assert(
    fc.property(anything, (value) => {
      expect(decodeValue(encodeValue(value))).toStrictEqual(value);
    }),
    { numRuns: 500 },
  );
});
