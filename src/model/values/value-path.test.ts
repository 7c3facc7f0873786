import { expect, test } from "vitest";
import { pathText } from "./value-path.ts";

test("a path reads as code would spell it", () => {
  expect(pathText([])).toBe("$");
  expect(pathText(["items", 3, "price"])).toBe("$.items[3].price");
  expect(pathText(["unit price", "", "0"])).toBe('$["unit price"][""]["0"]');
  expect(pathText([{ of: "keys", index: 0 }])).toBe("$.keys()[0]");
  expect(pathText(["m", { of: "values", index: 2 }, "a"])).toBe("$.m.values()[2].a");
});

test("a long path keeps its beginning and its end", () => {
  const text = pathText([...Array<string>(200).fill("next"), "price"]);
  expect(text).toHaveLength(200);
  expect(text.startsWith("$.next.next")).toBe(true);
  expect(text.endsWith(".next.price")).toBe(true);
});
