import { describe, expect, test } from "vitest";
import type { SubscriptionDraft } from "../../../src/triggers.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { inTriggers, keysOf, webhook, termsOf } from "./fixture.ts";
import type { InTriggers } from "./fixture.ts";

const draft: SubscriptionDraft = {
  key: "a",
  source: webhook,
  target: { kind: "build" },
};

export function subscriptionListsSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("listing subscriptions", () => {
    listTests(fixture);
  });
}

function listTests(fixture: InTriggers): void {
  test(
    "[A83] gives a stable source key, and lists by session, source and state in order",
    fixture(async ({ mine, theirs }) => {
      const { triggers, sessions } = mine;
      await sessions.create("s1");
      await sessions.create("s2");
      const source = { type: "file", value: { path: "/a", depth: 1 } };
      expect(triggers.sourceKey("file", { depth: 1, path: "/a" })).toBe(
        "source:a66d8d063cf4ac55d43a550842774198758c82c400bd8f8d8afa6bb749b26c2c",
      );
      for (const registrant of ["s2", "s1"])
        for (const key of ["b", "a"])
          await triggers.subscribe({ ...draft, registrant, key, source });
      await triggers.subscribe({ ...draft, key: "z" });
      await triggers.disable({ registrant: "s1", key: "a" });
      expect(await keysOf(theirs, {})).toBe("host/z s1/a s1/b s2/a s2/b");
      expect(await keysOf(theirs, { registrant: "s1" })).toBe("s1/a s1/b");
      expect(await keysOf(theirs, { registrant: null })).toBe("host/z");
      const sourceKey = triggers.sourceKey("file", source.value);
      expect(
        await keysOf(theirs, {
          sourceType: "file",
          sourceKey,
          isEnabled: true,
        }),
      ).toBe("s1/b s2/a s2/b");
      expect(await keysOf(theirs, { isEnabled: false })).toBe("s1/a");
      const first = await triggers.list({ limit: 2 });
      expect(await keysOf(theirs, { after: first.next ?? "" })).toBe("s1/b s2/a s2/b");
      expect(
        await rejection(triggers.list({ after: first.next ?? "", isEnabled: true })),
      ).toMatchObject({ code: "CURSOR_INVALID" });
    }),
  );

  test(
    "[A83] lists those whose target has a definition, as they say now",
    fixture(async ({ mine, theirs }) => {
      const { triggers, sessions } = mine;
      await sessions.create("s1");
      const of = (definition: string | null) => ({
        ...draft,
        target: { kind: "build", definition },
      });
      const own = { registrant: "s1", key: "a" };
      await triggers.subscribe(draft);
      await triggers.subscribe({ ...of("ci"), key: "b" });
      await triggers.subscribe({ ...of("ci"), key: "c" });
      await triggers.subscribe({ ...of("ci"), ...own });
      await triggers.subscribe({ ...of("docs"), key: "d" });
      const ci = { definition: "ci" };
      expect(await keysOf(theirs, ci)).toBe("host/b host/c s1/a");
      expect(await keysOf(theirs, { ...ci, registrant: "s1" })).toBe("s1/a");
      const { next = "" } = await triggers.list({ ...ci, limit: 1 });
      expect(await keysOf(theirs, { ...ci, after: next })).toBe("host/c s1/a");
      expect(await rejection(triggers.list({ definition: "docs", after: next }))).toMatchObject({
        code: "CURSOR_INVALID",
      });
      expect(await rejection(triggers.list({ definition: 5 as never }))).toMatchObject({
        code: "OPTION_INVALID",
      });
      await triggers.revise("d", termsOf(of("ci")));
      await triggers.revise("b", termsOf(of(null)));
      await triggers.disable("c");
      expect(await keysOf(theirs, ci)).toBe("host/c host/d s1/a");
      expect(await keysOf(theirs, { ...ci, isEnabled: false })).toBe("host/c");
      await triggers.delete(own);
      await triggers.delete("d");
      expect(await keysOf(theirs, ci)).toBe("host/c");
      await triggers.subscribe({ ...draft, key: "d" });
      expect(await keysOf(theirs, ci)).toBe("host/c");
    }),
  );
}
