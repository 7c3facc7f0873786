import type { RuntimeEvent } from "../../runtime/runtime-event.ts";
import type { CliContext } from "../context.ts";
import { jsonText } from "./json.ts";
import { oneLine, type Colour } from "./style.ts";

const colours: Readonly<Record<RuntimeEvent["level"], Colour>> = {
  debug: "dim",
  info: "cyan",
  warn: "yellow",
  error: "red",
};

/** Prints messages of runs and the runtime: JSON lines, or lines of text on a terminal. */
export function logOn(context: CliContext): (event: RuntimeEvent) => void {
  const isForPeople = !context.isJson && context.host.stdout.isTTY === true;
  const { style } = context;
  return ({ level, message, details, source, data }) => {
    const time = new Date(context.now()).toISOString();
    if (!isForPeople)
      return context.printJson({
        time,
        level,
        message,
        source,
        ...details,
        data,
      });
    const beside = Object.entries({ ...details, data })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${jsonText(value)}`)
      .join(" ");
    context.print(
      `${style("dim", time.slice(11, 23))} ${style(colours[level], level.padEnd(5))} ${oneLine(message)} ${style("dim", oneLine(beside))}`.trimEnd(),
    );
  };
}
