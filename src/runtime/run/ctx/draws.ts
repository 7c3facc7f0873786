import { mix64, splitmix64 } from "../../../model/execution/splitmix.ts";
import { encodeUlid, ulidRandomBytes } from "../../../model/ids/ulid.ts";
import { hexOf } from "../../../model/values/hex.ts";

/**
 * The source of repeatable random values. A value follows from the run's seed, the calls made
 * so far and the draws since. So branches that run side by side draw the same values on each
 * replay. No draw needs an event.
 */
export interface Draw {
  readonly seed: bigint;
  readonly calls: number;
  readonly draws: number;
}

function words({ seed, calls, draws }: Draw, count: number): bigint[] {
  return splitmix64(mix64(mix64(seed + BigInt(calls)) + BigInt(draws)), count);
}

/** A number of at least 0 and below 1, with 53 bits. */
export function randomOf(draw: Draw): number {
  const [word = 0n] = words(draw, 1);
  return Number(word >> 11n) / 2 ** 53;
}

function bytesOf(draw: Draw): Uint8Array {
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  words(draw, 2).forEach((word, index) => view.setBigUint64(index * 8, word));
  return bytes;
}

/** A UUID of version 4. */
export function uuidOf(draw: Draw): string {
  const bytes = bytesOf(draw);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return hexOf(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The id of a run that was given none. */
export function runIdOf(draw: Draw, now: number): string {
  return `E_${encodeUlid(now, bytesOf(draw).subarray(0, ulidRandomBytes))}`;
}
