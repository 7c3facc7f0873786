import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { draftOf, givenList, optionsOf } from "./shape.ts";

interface Options {
  readonly id?: string;
  readonly tags?: readonly string[];
}

class OwnOptions implements Options {
  readonly id = "a";
}

class ComputedOptions implements Options {
  get id(): string {
    return "a";
  }
}

describe("options", () => {
  test.each([
    ["a plain object", { id: "a" }],
    ["one of another realm", runInNewContext('({ id: "a" })') as Options],
    ["one without a prototype", Object.assign(Object.create(null) as object, { id: "a" })],
    ["an instance of a class with fields", new OwnOptions()],
    ["an instance of a class with getters", new ComputedOptions()],
    ["a class with a tag", { id: "a", [Symbol.toStringTag]: "Settings" }],
    ["a proxy that only passes on", new Proxy({ id: "a" }, {})],
  ])("may be %s", (_, given) => {
    expect(optionsOf<Options>(given, ["id", "tags"])).toEqual({ id: "a" });
    expect(draftOf<Options>("it", given, ["id", "tags"])).toEqual({ id: "a" });
  });

  test("keep which ones were given as undefined", () => {
    const given = optionsOf({ id: undefined }, ["id"]);
    expect(Object.keys(given)).toEqual(["id"]);
  });

  test("of another realm that have no fields are named as here", () => {
    const date = runInNewContext("new Date(0)") as object;
    expect(() => optionsOf(date)).toThrow("Expected options to be a plain object; got a Date.");
  });

  test("are read once", () => {
    let reads = 0;
    const given = {
      get id() {
        reads += 1;
        return `read ${reads}`;
      },
    };
    const options = optionsOf(given, ["id"]);
    expect([options.id, options.id, reads]).toEqual(["read 1", "read 1", 1]);
  });
});

test("a list whose items throw is refused with the cause", () => {
  const items = Object.defineProperty([1], 0, {
    get() {
      throw new Error("x");
    },
  });
  expect(() => givenList("tags", items)).toThrow(
    expect.objectContaining({
      code: "OPTION_INVALID",
      details: { option: "tags" },
      cause: new Error("x"),
    }),
  );
});
