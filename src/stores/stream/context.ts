import type { StoreContext } from "../context.ts";

/** The parts of a store's context that the live output of runs needs. */
export type StreamContext = Pick<StoreContext, "database" | "codec" | "decode">;
