import { isStorable } from "../shape.ts";
import { isRecord } from "../values/spoken-kind.ts";

/**
 * Short texts that go with a run and with everything it starts, such as a trace context. They are
 * stored in the clear, and every child has a copy, so they are bounded.
 */
export type Metadata = Readonly<Record<string, string>>;

export const metadataEntriesMax = 16;
export const metadataNameMax = 64;
export const metadataValueMax = 512;

export const noMetadata: Metadata = Object.freeze({});

export function isMetadataName(name: string): boolean {
  return name !== "" && name.length <= metadataNameMax && isStorable(name);
}

export function isMetadataValue(value: unknown): value is string {
  return isStorable(value) && value.length <= metadataValueMax;
}

/** True for metadata as it is stored. */
export function isMetadata(given: unknown): given is Metadata {
  if (!isRecord(given) || Array.isArray(given)) return false;
  const entries = Object.entries(given);
  return (
    entries.length <= metadataEntriesMax &&
    entries.every(([name, value]) => isMetadataName(name) && isMetadataValue(value))
  );
}
