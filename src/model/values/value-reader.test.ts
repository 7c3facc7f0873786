import { describe, expect, test } from "vitest";
import { decodeValue } from "./values.ts";

const malformed = expect.objectContaining({ code: "VALUE_MALFORMED" });

describe("text that was not written by us is refused", () => {
  test.each([
    ["nothing", ""],
    ["no JSON", "{a:1}"],
    ["two values", "1 2"],
    ["an unknown tag", '{"$holdfast":"regexp","value":"x"}'],
    ["a tag named like a method", '{"$holdfast":"toString","value":"x"}'],
    ["a tag that is no text", '{"$holdfast":1,"value":"x"}'],
    ["a tag without value", '{"$holdfast":"date"}'],
    ["a tag with more", '{"$holdfast":"bigint","value":"1","more":1}'],
    ["undefined with a value", '{"$holdfast":"undefined","value":1}'],
    ["a value under another key", '{"$holdfast":"bigint","valeu":"1"}'],
    ["a date that is none", '{"$holdfast":"date","value":"tomorrow"}'],
    ["a date in other words", '{"$holdfast":"date","value":"2026-01-02"}'],
    ["a date as number", '{"$holdfast":"date","value":0}'],
    ["a bigint with zeros", '{"$holdfast":"bigint","value":"01"}'],
    ["a negative zero", '{"$holdfast":"bigint","value":"-0"}'],
    ["a bigint in hexadecimal", '{"$holdfast":"bigint","value":"0x1"}'],
    ["an empty bigint", '{"$holdfast":"bigint","value":""}'],
    ["bytes that are not base64", '{"$holdfast":"bytes","value":"?"}'],
    ["a map of non-pairs", '{"$holdfast":"map","value":[[1]]}'],
    ["a map of no list", '{"$holdfast":"map","value":{}}'],
    ["a map with a key twice", '{"$holdfast":"map","value":[[1,2],[1,3]]}'],
    ["a set with an item twice", '{"$holdfast":"set","value":[1,1]}'],
    ["a set of no list", '{"$holdfast":"set","value":1}'],
    ["an error without message", '{"$holdfast":"error","value":{"name":"E"}}'],
    ["an escape of nothing", '{"$holdfast":"object","value":{"a":1}}'],
    ["an escape of null", '{"$holdfast":"object","value":null}'],
    ["a bad tag deep inside", '{"a":[{"b":{"$holdfast":"x"}}]}'],
  ])("%s", (_, text) => {
    expect(() => decodeValue(text)).toThrow(malformed);
  });

  test("nesting without end, when tags make us walk it", () => {
    const deep = `${"[".repeat(100_000)}{"$holdfast":"undefined"}${"]".repeat(100_000)}`;
    expect(() => decodeValue(deep)).toThrow(malformed);
  });

  test("causes without end", () => {
    const deep =
      '{"$holdfast":"error","value":' +
      '{"name":"E","message":"","cause":'.repeat(10_000) +
      '{"name":"E","message":""}' +
      "}".repeat(10_001);
    expect(() => decodeValue(deep)).toThrow(malformed);
  });
});

test("the error does not quote the text", () => {
  try {
    decodeValue('{"password":hunter2}');
    expect.unreachable();
  } catch (error) {
    expect(String(error)).not.toContain("hunter2");
    expect(error).not.toHaveProperty("cause");
  }
});

test("the marker inside ordinary text is ordinary text", () => {
  expect(decodeValue('{"a":"$holdfast","b":["\\"$holdfast\\":"]}')).toEqual({
    a: "$holdfast",
    b: ['"$holdfast":'],
  });
});

test("what nests to the limit with a tag inside reads back", () => {
  const text = `${"[".repeat(200)}{"$holdfast":"bigint","value":"7"}${"]".repeat(200)}`;
  let value = decodeValue(text);
  for (let level = 0; level < 200; level += 1) {
    value = (value as readonly unknown[])[0];
  }
  expect(value).toBe(7n);
});
