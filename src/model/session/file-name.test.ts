import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { sessionFileName } from "./file-name.ts";

const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex");

test("[A52] the name of a session's file is the same every time, readable and without separators", () => {
  expect(sessionFileName("chat", sha256Hex)).toBe("chat-31e06f7d89feb99a.db");
  expect(sessionFileName("../team/chat 7", sha256Hex)).toBe("team_chat_7-6b5f3a47c4b7f9ea.db");
  expect(sessionFileName("名前", sha256Hex)).toMatch(/^session-[0-9a-f]{16}\.db$/);
  expect(sessionFileName("x".repeat(256), sha256Hex)).toMatch(/^x{80}-[0-9a-f]{16}\.db$/);
});

test("[A52] ids that read alike have files of their own", () => {
  const names = ["a/b", "a_b", "a b", "/a/b/"].map((id) => sessionFileName(id, sha256Hex));
  expect(new Set(names).size).toBe(4);
  for (const name of names) expect(name).toMatch(/^a_b-[0-9a-f]{16}\.db$/);
});
