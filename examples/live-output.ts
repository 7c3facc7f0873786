/**
 * Live output: a step shows what it does while it runs, and any number of
 * readers follow it, also one that comes late or comes back.
 */
import { openHoldfast, workflow } from "holdfast";

/** Stands for a model, whose connection breaks once in the middle. */
async function* tokens(attempt: number): AsyncGenerator<string> {
  for (const [index, word] of ["Once", "upon", "a", "time"].entries()) {
    if (attempt === 1 && index === 2) throw new Error("connection reset");
    yield word;
  }
}

const story = workflow("story", async (ctx) =>
  ctx.step("tell", { retry: { backoff: "10ms" } }, async ({ stream, attempt }) => {
    const words: string[] = [];
    for await (const word of tokens(attempt)) {
      stream(word);
      words.push(word);
    }
    return words.join(" ");
  }),
);

const holdfast = await openHoldfast(":memory:");
await holdfast.work([story]);
const run = await holdfast.start(story);

/** What a reader gets, and the cursor of its second chunk. */
async function read(after?: string): Promise<{ words: string; second: string }> {
  const words: string[] = [];
  let second = "";
  for await (const output of run.stream(after === undefined ? {} : { after })) {
    words.push(output.kind === "chunk" ? String(output.value) : `[${output.kind}]`);
    if (output.kind !== "end" && words.length === 2) second = output.cursor;
  }
  return { words: words.join(" "), second };
}

const early = await read();
console.log("early:   ", early.words);
console.log("late:    ", (await read()).words);

// A reader that was cut off keeps only a cursor.
console.log("again:   ", (await read(early.second)).words);

console.log("recorded:", await run.result());
await holdfast.close();

// Output:
// early:    Once upon [superseded] Once upon a time [end]
// late:     Once upon [superseded] Once upon a time [end]
// again:    [superseded] Once upon a time [end]
// recorded: Once upon a time
