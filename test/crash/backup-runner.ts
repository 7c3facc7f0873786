import { heavyReads } from "../sqlite/heavy.ts";

/**
 * Backs a file up and reports each progress, then the code of the error or
 * "done". When it shall get stuck it does nothing more after the first report.
 */
const [path = "", to = "", isStuck] = process.argv.slice(2);
const heavy = heavyReads(path);
const report = (line: string): boolean => process.stdout.write(`${line}\n`);
try {
  await heavy.backup(to, {
    onProgress({ done }) {
      report(String(done));
      if (isStuck === "stuck") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    },
  });
  report("done");
} catch (error) {
  report(`${(error as { code?: string }).code} ${(error as Error).message}`);
}
await heavy.close();
