import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { build } from "./build.ts";
import { onProcesses } from "./fixture.ts";

/** What is stored is what a caller gave, whatever it does with its objects afterwards. */
export function processValuesSuite(backend: Backend): void {
  describe("an object that its caller changes right after the call", () => {
    test(
      "is held to the schema as it was",
      onProcesses(backend, async ({ store }) => {
        await store.register(build);
        const payload: { percent: unknown } = { percent: "none" };
        const refused = rejection(store.append("p", { type: "progress", payload }));
        payload.percent = 7;
        expect(await refused).toMatchObject({ code: "EVENT_PAYLOAD_INVALID" });
        const accepted = store.append("p", { type: "progress", payload });
        payload.percent = "none";
        expect(await accepted).toMatchObject({
          event: { sequence: 1, payload: { percent: 7 } },
        });
      }),
    );

    test(
      "wakes with the text it had",
      onProcesses(backend, async ({ store, queue }) => {
        await store.register(build);
        const payload = { text: "before" };
        const call = store.append("p", { type: "found", payload });
        payload.text = "after";
        expect(await call).toMatchObject({
          event: { payload: { text: "before" } },
          wake: { input: "before" },
        });
        expect((await queue.list("s")).items).toMatchObject([
          { items: [{ payload: { input: "before" } }] },
        ]);
      }),
    );

    test(
      "ends a process with the output it had, and the same ends it again",
      onProcesses(backend, async ({ store }) => {
        await store.register(build);
        const value = { total: 1 };
        const call = store.complete("p", { kind: "completed", value });
        value.total = 999;
        const { event } = await call;
        const output = { kind: "completed", value: { total: 1 } } as const;
        expect(event.payload).toEqual({ output });
        expect(await store.waitForEnd("p")).toEqual(output);
        expect(await store.complete("p", output)).toMatchObject({
          isReplay: true,
        });
      }),
    );

    test(
      "declares the events it declared",
      onProcesses(backend, async ({ store }) => {
        const schema = { type: "string" };
        const draft = {
          id: "p",
          kind: "tool",
          eventTypes: [{ name: "said", schema }],
        };
        const call = store.register(draft as never);
        schema.type = "number";
        await call;
        expect(await store.get("p")).toMatchObject({
          eventTypes: [{ name: "said", schema: { type: "string" } }],
        });
        await store.append("p", { type: "said", payload: "a text" });
      }),
    );
  });

  test(
    "a page of large events is short, and the next one goes on behind it",
    onProcesses(backend, async ({ store }) => {
      await store.register(build);
      const text = "x".repeat(1_000_000);
      const count = 24;
      for (let n = 1; n <= count; n += 1) await store.signal("p", "go", text, { key: `${n}` });
      const lengths: number[] = [];
      const seen: number[] = [];
      let after: string | undefined;
      do {
        const page = await store.events("p", {
          ...(after !== undefined && { after }),
          limit: 1_000,
        });
        lengths.push(page.items.length);
        seen.push(...page.items.map(({ sequence }) => sequence));
        after = page.next;
      } while (after !== undefined);
      expect(seen).toEqual(Array.from({ length: count }, (_, n) => n + 1));
      expect(Math.max(...lengths)).toBeLessThan(count);
      // The latest, as many as one answer should hold.
      const { items } = await store.recent("p", 1_000);
      expect(items.length).toBeLessThan(count);
      expect(items.length).toBeGreaterThan(0);
      expect(items.map(({ sequence }) => sequence)).toEqual(seen.slice(-items.length));
    }),
  );

  test(
    "lists show processes without what may be large of them",
    onProcesses(backend, async ({ store }) => {
      const input = "x".repeat(100_000);
      await store.register({ ...build, input, label: "the build" });
      await store.setExternalRef("p", { backend: "b", id: "x".repeat(512) });
      await store.grant("p", "s");
      const shown = [
        (await store.list()).items[0],
        (await store.worklist()).items[0]?.process,
        (await store.handles("s")).items[0]?.process,
      ];
      for (const process of shown) {
        expect(process).toMatchObject({
          id: "p",
          identity: { kind: "tool", label: "the build", definition: null },
          disposition: "rerunnable",
          causedBy: "turn-1",
          status: "running",
          sequence: 1,
        });
        expect(JSON.stringify(process).length).toBeLessThan(1_000);
      }
      expect(await store.get("p")).toMatchObject({ input });
    }),
  );
}
