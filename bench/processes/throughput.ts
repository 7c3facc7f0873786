import { inScratch, rounded } from "../scratch.ts";
import { appendInProcesses, together } from "./workers.ts";
import { size } from "../sizes.ts";

const callers = size(150, 24);
const operations = size(45_000, 240);

/** The same callers in 1, 3 and 8 processes on one file. */
export function throughput(): Promise<object> {
  return inScratch(async (folder) => {
    const measure = async (processes: number) => {
      const reports = await appendInProcesses({
        folder,
        name: `p${processes}`,
        callers,
        each: operations / callers,
        processes,
      });
      return {
        perSecond: Math.round(together(reports)),
        longestWaitMs: rounded(Math.max(...reports.map((report) => report.longestWaitMs))),
      };
    };
    const one = await measure(1);
    const three = await measure(size(3, 2));
    const eight = await measure(size(8, 3));
    return {
      value: three.perSecond,
      unit: "operations/s in 3 processes",
      ceiling: one.perSecond,
      ratio: rounded(three.perSecond / one.perSecond),
      ratioOfEight: rounded(eight.perSecond / one.perSecond),
      one,
      three,
      eight,
    };
  });
}
