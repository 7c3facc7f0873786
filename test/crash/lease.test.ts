import { expect, onTestFinished, test } from "vitest";
import type { OwnerId } from "../../src/kernel.ts";
import { leases, queue } from "../../src/sessions.ts";
import { createSession } from "../conformance/lease/leased-sessions.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

const parent = { owner: "parent", incarnation: "first" };

test("[A25] [A29] the lease of a process that is killed can be had at once, with what it had claimed", () =>
  withFolder(async (folder) => {
    const database = await folder.open();
    await createSession(database, "s");
    const work = queue(database);
    await work.enqueue("s", { items: [{ kind: "input", payload: "a" }] });
    const child = new Child("lease-holder.ts", [folder.file()]);
    onTestFinished(() => child.kill());
    await child.reported(1);
    expect(child.errors).toBe("");
    const { kind, owner: process } = JSON.parse(child.lines[0] ?? "{}") as {
      readonly kind: string;
      readonly owner: OwnerId;
    };
    expect(kind).toBe("acquired");

    const store = leases(database);
    const seen = { fence: 1, process };
    expect(await database.liveness(process)).toBe("alive");
    expect(await store.reclaim("s", parent, seen)).toMatchObject({
      kind: "busy",
      holder: { owner: "child", process },
    });

    // An hour is left of the lease: only the death can end these waits.
    const lease = store.waitForLease("s", parent);
    const ready = work.waitForWork("s");
    child.kill();
    await child.ended;
    await ready;
    expect(await lease).toMatchObject({ owner: "parent", fence: 2 });
    const claim = await work.claimTurn(await lease);
    expect(claim?.batches[0]?.items[0]?.payload).toBe("a");
  }));
