const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const characterOf = new TextEncoder().encode(alphabet);
const padding = "=".charCodeAt(0);
const noDigit = 255;
const digitOf = new Uint8Array(256).fill(noDigit);
characterOf.forEach((character, digit) => (digitOf[character] = digit));

// Written by hand, because Buffer exists only in Node, Uint8Array.toBase64 is newer than the oldest
// supported Node, and btoa needs a string of the bytes first.

/** Returns standard base64 with padding. */
export function encodeBase64(bytes: Uint8Array): string {
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4).fill(padding);
  let to = 0;
  for (let from = 0; from < bytes.length; from += 3) {
    // Beyond the end the bytes read as 0, as padding requires.
    const bits =
      ((bytes[from] ?? 0) << 16) | ((bytes[from + 1] ?? 0) << 8) | (bytes[from + 2] ?? 0);
    const digits = Math.min(4, bytes.length - from + 1);
    for (let digit = 0; digit < digits; digit += 1) {
      text[to + digit] = characterOf[(bits >> (18 - 6 * digit)) & 63] ?? 0;
    }
    to += 4;
  }
  return new TextDecoder().decode(text);
}

/**
 * Returns the bytes, or undefined when the text is not in the form that `encodeBase64` writes. Each
 * byte string has exactly one spelling, so equal bytes have equal hashes.
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padded = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padded);
  let bits = 0;
  let bitCount = 0;
  let to = 0;
  for (let from = 0; from < text.length - padded; from += 1) {
    const digit = digitOf[text.charCodeAt(from)] ?? noDigit;
    if (digit === noDigit) return undefined;
    bits = ((bits << 6) | digit) & 0xffff;
    bitCount += 6;
    if (bitCount >= 8) {
      bitCount -= 8;
      bytes[to] = bits >> bitCount;
      to += 1;
    }
  }
  const leftOver = bits & ((1 << bitCount) - 1);
  return leftOver === 0 ? bytes : undefined;
}
