import { appendFileSync } from "node:fs";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { programFunctions } from "../conformance/runtime/program.ts";
import { leaseOn, openTold } from "./told-database.ts";

/**
 * Runs random programs. Whatever their code sees is noted in a file outside
 * the database, as `[run, which run of its code, what it saw]`. After so many
 * of these lines it kills itself as `kill -9` would: in the middle of the code,
 * or when that has come to rest. A run of `guilty` kills it at once.
 */
const [place = "", traces = "", lifetime = "", hotRunsMax = "", concurrency = ""] =
  process.argv.slice(2);

let seen = 0;
let passes = 0;
const die = (): void => void process.kill(process.pid, "SIGKILL");

const { all } = programFunctions(
  (id) => {
    passes += 1;
    const pass = `${process.pid}-${passes}`;
    return (line) => {
      appendFileSync(traces, `${JSON.stringify([id, pass, line])}\n`);
      seen += 1;
      if (seen !== Number(lifetime)) return;
      if (seen % 2 === 0) die();
      else setImmediate(die);
    };
  },
  () => holdfast.executions,
);
const holdfast = await holdfastOn(await openTold(place));
const guilty = workflow("guilty", async (ctx) => ctx.step("kill", die));
await holdfast.work([...all, guilty], {
  lease: leaseOn(place, "4s"),
  hotRunsMax: Number(hotRunsMax),
  concurrency: Number(concurrency),
});
console.log("ready");
