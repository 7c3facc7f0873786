import { expect, test } from "vitest";
import { renderMigrations } from "../../scripts/render-migrations.ts";

test("migrations are embedded in order, with the checksums of their texts", () => {
  const second = { folder: "0002_two_words", sqlite: "", postgres: "" };
  const first = { folder: "0001_one", sqlite: 'a "b"\n', postgres: "" };
  expect(renderMigrations([second, first])).toBe(
    `// Written by \`npm run migrations\` from src/sql/migrations/. Do not edit.
import type { Migration } from "./migrations.ts";

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "one",
    sqlite: "a \\"b\\"\\n",
    postgres: "",
    checksum: {
      sqlite: "4a98ca0b96968b3061f96690e010317f05aff0d22e48f587c151a02deca66a15",
      postgres: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    },
  },
  {
    number: 2,
    name: "two_words",
    sqlite: "",
    postgres: "",
    checksum: {
      sqlite: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      postgres: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    },
  },
];
`,
  );
});
