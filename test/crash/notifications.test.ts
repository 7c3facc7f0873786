import { describe, expect, test } from "vitest";
import { Child } from "./child.ts";
import { withFile } from "./neighbours.ts";

describe("commits of those who do not ring", () => {
  test("are found by the poll where neither sockets nor a watch are to be had", () =>
    withFile(async (folder, start) => {
      const database = await folder.open(
        {},
        {
          socketBase: folder.file("x".repeat(90)),
          watch: () => {
            throw new Error("too many watches");
          },
        },
      );
      const neighbour = await start();
      // Whatever opening wrote is not what shall be heard.
      const before = database.stats().polls;
      const heard = new Promise<string>((resolve) => {
        database.subscribe((hint) => resolve(hint.kind));
      });
      await neighbour.write("untold");
      expect(await heard).toBe("unknown");
      expect(before).toBe(0);
      expect(database.stats().polls).toBeGreaterThan(0);
      expect(database.stats().peers.unwatched).toBe("too many watches");
    }));

  test("are heard beside a peer that rings all the time", () =>
    withFile(async (folder, start) => {
      const [listener, ringing] = [await start(), await start()];
      ringing.child.tell("flood 1000000 1");
      await listener.until(() => listener.heardKeys.length > 100);
      const stranger = new Child("foreign-writer.ts", [folder.file()]);
      await stranger.reported(1);
      expect(stranger.errors).toBe("");
      const [unknown, rung] = [listener.heardUnknown, listener.heardKeys.length];
      await listener.until(() => listener.heardUnknown > unknown);
      // It was the sweep, not a pause of the one who rings.
      await listener.until(() => listener.heardKeys.length > rung);
      expect(await stranger.ended).toBe(0);
    }));
});
