import { unlinkSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { withFolder } from "../sqlite/place.ts";
import { holdfastCli } from "./host.ts";

const ticking = `
  import { schedule, workflow } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
  export const tick = workflow("tick", () => "tock");
  export const ticks = schedule("ticks", { every: "1s" }, tick);
`;

test("work ends as failed when its database must be opened anew, so that it is restarted", () =>
  withFolder(async (folder) => {
    writeFileSync(folder.file("app.mjs"), ticking);
    const { code, stdout } = await holdfastCli(["work", "app.mjs"], {
      cwd: folder.path,
      onOutput(text) {
        if (!text.includes('"working"')) return;
        for (const end of ["", "-wal", "-shm"]) unlinkSync(folder.file(`holdfast.db${end}`));
      },
    });
    expect(stdout).toMatch(/"level":"error",.* reopen the database/);
    expect(stdout).toMatch(/"stopping".*\n.*"stopped"/);
    expect(code).toBe(1);
  }));
