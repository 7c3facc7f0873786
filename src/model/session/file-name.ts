const readableMax = 80;

/**
 * The name of the file that holds a session: what can be read of its id, and
 * enough of its hash that two ids never share one.
 */
export function sessionFileName(id: string, sha256Hex: (text: string) => string): string {
  const readable = id
    .replaceAll(/[^A-Za-z0-9_-]/g, "_")
    .replaceAll(/^_+|_+$/g, "")
    .slice(0, readableMax);
  return `${readable || "session"}-${sha256Hex(id).slice(0, 16)}.db`;
}
