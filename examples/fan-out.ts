import { activity, openHoldfast, workflow } from "holdfast";

const lengthOf = activity("texts/length", { concurrency: 20 }, async (_, text: string) => {
  if (text === "") throw new Error("nothing to measure");
  return text.length;
});

// All at once, with results in the order of the inputs.
const total = workflow("texts/total", async (ctx, texts: string[]) => {
  const lengths = await Promise.all(texts.map((text) => ctx.call(lengthOf, text)));
  return lengths.reduce((sum, length) => sum + length, 0);
});

// First come, first served. Children that are still open are cancelled at the end.
const firstLong = workflow("texts/first-long", async (ctx, texts: string[]) => {
  const set = ctx.joinSet<number>("lengths");
  for (const text of texts) set.spawn(lengthOf, text);
  for await (const length of set) if (length >= 3) return `one of ${length} characters`;
  return "none";
});

const holdfast = await openHoldfast(":memory:");
await holdfast.work([total, firstLong, lengthOf]);

const thousand = Array.from({ length: 1_000 }, (_, index) => `text ${index}`);
const run = await holdfast.start(total, thousand);
console.log(await run.result());
const search = await holdfast.start(firstLong, ["a", "bb", "ccc"]);
console.log(await search.result());
await holdfast.close();

// Output:
// 7890
// one of 3 characters
