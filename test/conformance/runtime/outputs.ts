import type { LiveOutput } from "../../../src/runtime/stream/live-output.ts";

/** An output in few words. */
export function said(output: LiveOutput): string {
  if (output.kind === "chunk") return String(output.value);
  return output.kind;
}

/** Everything that a reader gets until the end. */
export async function allOf(outputs: AsyncIterable<LiveOutput>): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const output of outputs) found.push(said(output));
  return found;
}
