import { describe, expect, test } from "vitest";
import { callable } from "../callable.ts";
import { Call } from "./call.ts";
import { RerunGates } from "./rerun-gates.ts";

function call(
  name: string,
  { attempts = 0, lockReruns = 0 }: { attempts?: number; lockReruns?: number },
): Call {
  const noop = (): void => undefined;
  const body = callable(name, function* () {});
  const made = new Call(body, "write", undefined, undefined, noop, noop);
  made.attempts = attempts;
  made.lockReruns = lockReruns;
  return made;
}

function gates(): { readonly held: string[]; readonly gates: RerunGates } {
  const held: string[] = [];
  return {
    held,
    gates: new RerunGates({
      hold: (name) => held.push(`hold ${name}`),
      release: (name) => held.push(`release ${name}`),
    }),
  };
}

describe("the gate of a name", () => {
  test("is passed by calls that met one conflict", () => {
    const { gates: at, held } = gates();
    expect(at.mayGo(call("a", { attempts: 1 }))).toBe(true);
    expect(at.mayGo(call("a", { attempts: 1 }))).toBe(true);
    expect(held).toEqual([]);
  });

  test("admits one call after two conflicts or one wait for a lock, and the next when that call has ended", () => {
    const { gates: at, held } = gates();
    const first = call("a", { attempts: 2 });
    const second = call("a", { attempts: 1, lockReruns: 1 });
    const other = call("b", { attempts: 2 });
    expect([first, second, other].map((each) => at.mayGo(each))).toEqual([true, false, true]);
    expect(at.mayGo(first)).toBe(true);
    expect(at.leave(first)).toBe(second);
    expect(at.leave(first)).toBe(undefined);
    expect(at.leave(second)).toBe(undefined);
    expect(held).toEqual(["hold a", "hold b", "release a"]);
  });

  test("is left by a call that is alone and still held up", () => {
    const { gates: at, held } = gates();
    const first = call("a", { lockReruns: 1 });
    const second = call("a", { lockReruns: 1 });
    at.mayGo(first);
    at.mayGo(second);
    expect(at.lockedOut(second)).toBe(undefined);
    expect(at.lockedOut(first)).toBe(second);
    expect(at.mayGo(first)).toBe(true);
    expect(at.leave(first)).toBe(undefined);
    expect(at.leave(second)).toBe(undefined);
    expect(held).toEqual(["hold a", "release a"]);
  });

  test("returns all waiting calls when they are to be refused", () => {
    const { gates: at } = gates();
    const [first, second, third] = [1, 2, 3].map(() => call("a", { attempts: 2 })) as [
      Call,
      Call,
      Call,
    ];
    for (const each of [first, second, third]) at.mayGo(each);
    expect(at.drain()).toEqual([second, third]);
    expect(at.leave(first)).toBe(undefined);
  });
});
