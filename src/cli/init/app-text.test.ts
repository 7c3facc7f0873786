import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { appText } from "./app-text.ts";

const root = mkdtempSync(path.join(tmpdir(), "holdfast-app-text-"));

afterAll(() => rmSync(root, { recursive: true }));

/** Enough of the package for the module to be loaded. */
const stub = `
  export const activity = (name) => name;
  export const workflow = (name) => name;
  export const openHoldfast = () => { throw new Error("opened"); };
`;

test("the first file opens nothing when a program imports it, however that was started", () => {
  const folder = path.join(root, "node_modules/holdfast");
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "index.mjs"), stub);
  writeFileSync(path.join(folder, "package.json"), '{"exports":"./index.mjs"}');
  writeFileSync(path.join(root, "app.mjs"), appText("app.mjs"));
  const program = 'import("./app.mjs").then((app) => console.log(app.fulfil));';
  writeFileSync(path.join(root, "server.js"), program);
  for (const args of [["server.js"], ["server"], ["--eval", program]])
    expect(execFileSync(process.execPath, args, { cwd: root, encoding: "utf8" })).toBe("fulfil\n");
  const alone = (): string =>
    execFileSync(process.execPath, ["app.mjs"], {
      cwd: root,
      stdio: "pipe",
    }).toString();
  expect(alone).toThrow("opened");
});
