import { HoldfastError } from "../errors.ts";

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const canonical = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** The random part: 80 bits. */
export const ulidRandomBytes = 10;
const timeMsMax = 2 ** 48 - 1;

/**
 * Encodes a ULID: 48 bits of time and 80 random bits in 26 characters of Crockford's base32. Text
 * order is time order, which keeps indexes compact.
 */
export function encodeUlid(timeMs: number, random: Uint8Array): string {
  if (!Number.isInteger(timeMs) || timeMs < 0 || timeMs > timeMsMax) {
    throw new HoldfastError(
      "TIME_OUT_OF_RANGE",
      `An id can carry whole milliseconds from 1970 to the year 10889, not ${timeMs}. Check the clock.`,
      { timeMs },
    );
  }
  // Two halves of 40 bits each stay exact in a double.
  return base32(timeMs, 10) + base32(bigEndian(random, 0), 8) + base32(bigEndian(random, 5), 8);
}

/**
 * Accepts only the canonical upper-case form. With other spellings two texts would name one thing,
 * and equality in the database would be wrong.
 */
export function isUlid(text: string): boolean {
  return canonical.test(text);
}

/** Returns the instant at which a ULID was minted. The text must have passed `isUlid`. */
export function ulidTimeMs(ulid: string): number {
  let timeMs = 0;
  for (const character of ulid.slice(0, 10)) {
    timeMs = timeMs * 32 + alphabet.indexOf(character);
  }
  return timeMs;
}

function base32(value: number, length: number): string {
  let text = "";
  let rest = value;
  for (let digit = 0; digit < length; digit += 1) {
    text = alphabet.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function bigEndian(bytes: Uint8Array, from: number): number {
  return bytes.subarray(from, from + 5).reduce((value, byte) => value * 256 + byte, 0);
}
