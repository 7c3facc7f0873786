import { createInterface } from "node:readline";
import { effects } from "../../src/effects.ts";
import { openTold } from "./told-database.ts";

/**
 * Executes the effect whose key it is told, line by line, and lets each last
 * until the next line comes.
 */
const [place = ""] = process.argv.slice(2);
const store = effects(await openTold(place));
process.stdout.write("open\n");

let end = (): void => undefined;
for await (const key of createInterface({ input: process.stdin })) {
  end();
  void store.execute(
    { kind: "turn", session: "s", id: "t1" },
    key,
    { kind: "tool", input: 1 },
    () => {
      process.stdout.write(`runs ${key}\n`);
      return new Promise<string>((resolve) => {
        end = () => resolve(`${key} by the child`);
      });
    },
    { lease: "1 hour" },
  );
}
