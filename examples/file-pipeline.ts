import { activity, openHoldfast, workflow } from "holdfast";

const holdfast = await openHoldfast(process.env["HOLDFAST_DB"] ?? ":memory:");
const { attachments, sessions } = holdfast;

interface Stored {
  /** The session that owns the bytes: they are deleted with it. */
  readonly owner: string;
  readonly file: string;
}

// Bytes are kept once, under their own hash. Histories carry only the hash.
const read = async ({ owner, file }: Stored): Promise<string> =>
  new TextDecoder().decode((await attachments.get(owner, file)).content);

async function write(owner: string, text: string): Promise<Stored> {
  const content = new TextEncoder().encode(text);
  const description = { mediaType: "text/plain" };
  const { id } = await attachments.put(owner, content, description);
  await attachments.commit(owner, [id]); // without this, a sweep would remove it
  return { owner, file: id };
}

// Each part runs on any worker, and is retried on its own.
const countWords = activity("files/count-words", async (_, part: Stored) => {
  const words = (await read(part)).split(/\s+/).filter(Boolean);
  return words.length;
});

const digest = workflow("files/digest", async (ctx, upload: Stored) => {
  // A repeat after a crash stores nothing twice: equal bytes have one id.
  const parts = await ctx.step("split", async () => {
    const lines = (await read(upload)).split("\n");
    return Promise.all(lines.map((line) => write(upload.owner, line)));
  });
  const counts = await Promise.all(parts.map((part) => ctx.call(countWords, part)));
  const words = counts.reduce((sum, count) => sum + count, 0);
  return ctx.step("report", () => write(upload.owner, `${words} words in ${parts.length} lines`));
});

await holdfast.work([digest, countWords]);
await sessions.create("upload-7", { name: "knots.txt" });
const upload = await write("upload-7", "A rope holds\nwhat its knots hold fast");

const run = await holdfast.start(digest, upload, { id: "digest-7" });
const report = await run.result();
console.log(await read(report));
const { items } = await attachments.list("upload-7");
console.log(`${items.length} files`);

// Deleting the session deletes its attachments.
await sessions.erase("upload-7");
await read(report).catch((error: { code: string }) => console.log(error.code));
await holdfast.close();

// Output:
// 8 words in 2 lines
// 4 files
// SESSION_NOT_FOUND
