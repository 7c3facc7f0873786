import { commit } from "./commit.ts";
import { langgraph } from "./langgraph.ts";
import { postgres } from "./postgres.ts";
import { read } from "./read.ts";

export const sessionBenchmarks: Readonly<Record<string, () => Promise<object>>> = {
  "sessions.commit": commit,
  "sessions.read": read,
  "sessions.langgraph": langgraph,
  "sessions.postgres": postgres,
};
