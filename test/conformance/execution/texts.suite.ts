import { describe, expect, test } from "vitest";
import type { RunId } from "../../../src/model/ids/prefixed-id.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { T0, onExecutions, refusal } from "./fixture.ts";

/** Texts that no column takes; Postgres refuses both. */
const texts: Readonly<Record<string, (store: Executions, text: string) => Promise<unknown>>> = {
  "TEXT_INVALID message": (store, message) => store.log("a", [{ level: "info", message }]),
  "TEXT_INVALID stack": (store, stack) => store.addBacktraces("a", [{ from: 0, to: 1, stack }]),
  "ID_MALFORMED run": (store, run) =>
    store.log("a", [{ level: "info", message: "m", run: run as RunId }]),
  "OPTION_INVALID idPrefix": (store, idPrefix) => store.list({ idPrefix }),
  "OPTION_INVALID functionPrefix": (store, functionPrefix) => store.list({ functionPrefix }),
  "OPTION_INVALID tag": (store, tag) => store.list({ tag }),
  "NAME_INVALID reason": (store, reason) => store.cancel("a", { reason }),
};

export function executionTextsSuite(backend: Backend): void {
  describe("texts given to the execution log", () => {
    test(
      "texts with U+0000 or half a character are refused wherever text comes in",
      onExecutions(backend, async (fixture) => {
        await fixture.store.create({ id: "a", function: "f" });
        for (const [what, call] of Object.entries(texts))
          for (const text of ["a\0b", "\ud800", "\udc00 "])
            expect([what, text, await refusal(fixture, () => call(fixture.store, text))]).toEqual([
              what,
              text,
              what.split(" ")[0],
            ]);
      }),
    );

    test(
      "an error tells how long a text was and never what it said",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f" });
        const secret = `sesame-${"x".repeat(5_000)}`;
        for (const call of [
          () => store.create({ function: "f", metadata: { token: secret } }),
          () => store.create({ function: "f", metadata: { [secret]: "" } }),
          () => store.create({ function: "f", tags: [secret] }),
          () => store.create({ function: "f", concurrencyKey: secret }),
          () => store.cancel("a", { reason: secret }),
          () => store.signal("a", "go", 1, { key: secret }),
          () => store.append("a", 1, [{ kind: "unlocked", dueAt: T0, reason: secret }]),
        ]) {
          const { message, details } = await rejection(call());
          expect(message + JSON.stringify(details)).not.toContain("sesame");
        }
        const error = await rejection(store.cancel("a", { reason: secret }));
        expect(error.details).toEqual({ what: "A reason", length: 5_007 });
      }),
    );
  });

  describe("what an execution's surroundings and relatives decide", () => {
    test(
      "waits are given up on the clock of the surroundings",
      onExecutions(backend, async ({ store, clock }) => {
        await store.create({ id: "a", function: "f" });
        const waits = [
          store.waitForResult("a", { timeout: 1_000 }),
          store.waitForResponses("a", 0, { timeout: 1_000 }),
          store.waitForPending(["other"], { timeout: 1_000 }),
        ].map((wait) => rejection(wait));
        clock.advance(1_000);
        for (const { code } of await Promise.all(waits)) expect(code).toBe("DEADLINE_EXCEEDED");
      }),
    );

    test(
      "a missing execution is told from a missing parent and a missing event",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f" });
        for (const [missing, call] of [
          ["execution", () => store.get("b")],
          ["execution", () => store.append("b", 1, [{ kind: "paused" }])],
          ["parent", () => store.create({ id: "b.n:x_1", function: "f" })],
          ["event", () => store.event("a", 1)],
        ] as const)
          expect(await rejection(call())).toMatchObject({
            code: "EXECUTION_NOT_FOUND",
            details: { missing },
          });
      }),
    );
  });
}
