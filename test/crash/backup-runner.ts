import { heavyReads } from "../sqlite/heavy.ts";

/** Backs a file up and reports each progress, then the code of the error or "done". */
const [path = "", to = ""] = process.argv.slice(2);
const heavy = heavyReads(path);
const report = (line: string): boolean => process.stdout.write(`${line}\n`);
try {
  await heavy.backup(to, { onProgress: ({ done }) => report(String(done)) });
  report("done");
} catch (error) {
  report(`${(error as { code?: string }).code} ${(error as Error).message}`);
}
await heavy.close();
