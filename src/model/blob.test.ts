import { describe, expect, test } from "vitest";
import {
  blobKinds,
  isBlobHash,
  isBlobProfile,
  parseBlobHash,
  prepareBlob,
  verifiedBlob,
} from "./blob.ts";
import type { BlobProfile } from "./blob.ts";
import type { ByteTools } from "./values/byte-tools.ts";

/** Stands for the machine's: the "hash" is the length, and deflating drops every second byte of a pair. */
const tools: Pick<ByteTools, "sha256Hex" | "deflate" | "inflate"> = {
  sha256Hex: (bytes) => `hash of ${bytes.length}`,
  deflate: (bytes) => bytes.filter((_, index) => index % 2 === 0),
  inflate(bytes, sizeMax) {
    const grown = new Uint8Array(bytes.length * 2);
    bytes.forEach((byte, index) => grown.fill(byte, 2 * index, 2 * index + 2));
    return grown.length > sizeMax ? undefined : grown;
  },
};

function prepared(
  size: number,
  profile: BlobProfile,
  kind = blobKinds.executionState,
): ReturnType<typeof prepareBlob> {
  const content = new Uint8Array(size).fill(7);
  return prepareBlob(tools, { content, kind, profile, at: 5 });
}

describe("preparing a blob", () => {
  test.each([
    ["lowLatency", 1_000_000, "identity"],
    ["balanced", 4_095, "identity"],
    ["balanced", 4_096, "deflate"],
    ["compact", 1_023, "identity"],
    ["compact", 1_024, "deflate"],
  ] as const)("%s leaves %d bytes as %s", (profile, size, encoding) => {
    expect(prepared(size, profile)).toMatchObject({
      hash: `hash of ${size}`,
      kind: "execution-state",
      size,
      encoding,
      at: 5,
    });
  });

  test("leaves what is not compressible", () => {
    const blob = prepared(10_000, "compact", blobKinds.generic);
    expect(blob.encoding).toBe("identity");
    expect(blob.content).toHaveLength(10_000);
  });

  test("leaves what would not get smaller", () => {
    const blob = prepareBlob(
      { ...tools, deflate: (bytes) => bytes },
      {
        content: new Uint8Array(2_000),
        kind: blobKinds.module,
        profile: "compact",
        at: 0,
      },
    );
    expect(blob.encoding).toBe("identity");
  });

  test("copies the bytes", () => {
    const content = new Uint8Array([1, 2, 3]);
    const kind = blobKinds.generic;
    const blob = prepareBlob(tools, {
      content,
      kind,
      profile: "compact",
      at: 0,
    });
    content.fill(9);
    expect(blob.content).toEqual(new Uint8Array([1, 2, 3]));
  });
});

describe("verifying a blob", () => {
  const sound = prepared(4_096, "balanced");

  test("gives the bytes that were put, as a copy", () => {
    expect(verifiedBlob(tools, sound)).toEqual(new Uint8Array(4_096).fill(7));
    const plain = prepared(10, "balanced");
    const read = verifiedBlob(tools, plain);
    read.fill(0);
    expect(plain.content).toEqual(new Uint8Array(10).fill(7));
  });

  test.each([
    ["a hash of other bytes", { hash: "hash of 4095" }],
    ["a size below what it inflates to", { size: 4_095 }],
    ["a size above", { size: 4_097 }],
    ["a size that is none", { size: 1.5 }],
    ["a negative size", { size: -1 }],
    ["a size beyond every blob", { size: 268_435_457 }],
    ["an unknown encoding", { encoding: "brotli" }],
    ["the wrong encoding", { encoding: "identity" }],
    ["half its content", { content: sound.content.subarray(0, 1_024) }],
  ])("refuses %s, naming table and key", (_, damage) => {
    const found = { ...sound, ...damage };
    expect(() => verifiedBlob(tools, found)).toThrow(
      expect.objectContaining({
        code: "CORRUPT_ROW",
        details: { table: "holdfast_blob", key: found.hash },
      }) as Error,
    );
  });
});

describe("hashes and profiles", () => {
  const hash = "0123456789abcdef".repeat(4);

  test("are recognised", () => {
    expect(isBlobHash(hash)).toBe(true);
    expect(parseBlobHash(hash)).toBe(hash);
    expect(isBlobProfile("compact")).toBe(true);
    expect(isBlobProfile("toString")).toBe(false);
  });

  test.each(["", hash.slice(1), `${hash}0`, hash.toUpperCase(), `${hash}\n`])(
    "%j is no hash",
    (text) => {
      expect(isBlobHash(text)).toBe(false);
      expect(() => parseBlobHash(text)).toThrow(
        expect.objectContaining({ code: "ID_MALFORMED" }) as Error,
      );
    },
  );
});
