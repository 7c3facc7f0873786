import type { Database } from "../../src/kernel.ts";
import { until } from "./place.ts";

/** Subscribes, and waits until other processes are heard too. */
export async function listen(database: Database): Promise<string[]> {
  const heard: string[] = [];
  database.subscribe((hint) =>
    heard.push(hint.kind === "change" ? `${hint.operation} ${hint.key}` : "unknown"),
  );
  await until(() => heard.includes("unknown"));
  heard.length = 0;
  return heard;
}
