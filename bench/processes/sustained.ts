import { inScratch, rounded } from "../scratch.ts";
import { appendInProcesses, together } from "./workers.ts";
import { size } from "../sizes.ts";

const operations = size(1_000_000, 1_000);
const callers = size(1_000, 10);

/** A million operations: does it stay as fast as it began, and the log bounded? */
export function sustained(): Promise<object> {
  return inScratch(async (folder) => {
    const measure = async (processes: number) => {
      const reports = await appendInProcesses({
        folder,
        name: `sustained-${processes}`,
        callers,
        each: operations / callers,
        processes,
      });
      const sum = (pick: (report: (typeof reports)[number]) => number) =>
        reports.reduce((total, report) => total + pick(report), 0);
      const most = (pick: (report: (typeof reports)[number]) => number) =>
        rounded(Math.max(...reports.map(pick)));
      return {
        perSecond: Math.round(together(reports)),
        firstTenthPerSecond: Math.round(sum((one) => one.firstPerSecond)),
        lastTenthPerSecond: Math.round(sum((one) => one.lastPerSecond)),
        walMiBMax: rounded(most((one) => one.walBytesMax) / 1_048_576),
        loopDelayMs: {
          p50: most((one) => one.loopDelayMs.p50),
          p99: most((one) => one.loopDelayMs.p99),
          max: most((one) => one.loopDelayMs.max),
        },
        longestWaitMs: most((one) => one.longestWaitMs),
      };
    };
    const one = await measure(1);
    const three = await measure(size(3, 2));
    return {
      value: one.perSecond,
      unit: "operations/s over 1,000,000",
      ceiling: one.firstTenthPerSecond,
      ratio: rounded(one.lastTenthPerSecond / one.firstTenthPerSecond),
      one,
      three,
      note: "ratio is the last tenth against the first, in one process",
    };
  });
}
