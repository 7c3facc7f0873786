const readableMax = 80;

/**
 * Returns the name of a session's file: the readable part of its id, and enough of its hash that
 * two ids never share a file.
 */
export function sessionFileName(id: string, sha256Hex: (text: string) => string): string {
  const readable = id
    .replaceAll(/[^A-Za-z0-9_-]/g, "_")
    .replaceAll(/^_+|_+$/g, "")
    .slice(0, readableMax);
  return `${readable || "session"}-${sha256Hex(id).slice(0, 16)}.db`;
}
