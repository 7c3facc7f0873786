import { copyFileSync } from "node:fs";
import { basename } from "node:path";
import { manualClock } from "../../src/model/time/clock.ts";
import { Folder } from "../sqlite/place.ts";
import { prepareActions } from "./prepare-actions.ts";
import { killSuite } from "./kills.suite.ts";

killSuite(async () => {
  const folder = new Folder();
  const prepared = await folder.open({ clock: manualClock(1_000) });
  const orders = await prepareActions(prepared);
  await prepared.close();
  let copies = 0;
  return {
    orders,
    provesDeath: true,
    lanes: 2,
    async renewed() {
      copies += 1;
      const path = folder.file(`${copies}.db`);
      copyFileSync(folder.file(), path);
      return path;
    },
    async opened(path) {
      const name = basename(path);
      const clock = manualClock(2_000);
      const database = await folder.open({ clock }, {}, name);
      return {
        database,
        clock,
        close: () => database.close(),
      };
    },
    dispose: () => folder.dispose(),
  };
});
