import type { Branded } from "../ids/brand.ts";

/** The text a value codec wrote: what a payload column holds. Only the codec can read it. */
export type Encoded = Branded<"Encoded">;
