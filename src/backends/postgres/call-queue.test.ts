import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callable } from "../callable.ts";
import { CallQueue, callsOf } from "./call-queue.ts";
import { Call } from "./call.ts";
import type { ManyForm } from "./call.ts";

const together: ManyForm = function* () {
  return [];
};

function call(name: string, key?: string, many?: ManyForm): Call {
  const change = key === undefined ? undefined : { operation: name, key };
  const body = { ...callable(name, () => together([])), change };
  return new Call(
    body,
    "write",
    many,
    {},
    () => undefined,
    () => undefined,
  );
}

const name = ({ body }: Call): string => body.name;

/** Takes all ready work; the names of a set are joined. */
function takeAll(queue: CallQueue, setsAllowed = true): string[] {
  const taken: string[] = [];
  for (let work = queue.take(setsAllowed); work !== undefined; work = queue.take(setsAllowed))
    taken.push(callsOf(work).map(name).join("+"));
  return taken;
}

describe("the queue", () => {
  test("holds back the calls of a name, and releases them in their order", () => {
    const queue = new CallQueue(10);
    const given = ["a", "b", "a", "c"].map((each) => call(each));
    for (const each of given) queue.push(each);
    queue.hold("a");
    expect(takeAll(queue)).toEqual(["b", "c"]);
    expect(queue.depth).toBe(2);
    queue.push(call("a", "k"));
    expect(takeAll(queue)).toEqual([]);
    const [first] = given;
    assert(first !== undefined && queue.withdraw(first));
    queue.release("a");
    expect(takeAll(queue)).toEqual(["a", "a"]);
    expect(queue.depth).toBe(0);
  });

  test("returns held-back calls too when all are to be refused", () => {
    const queue = new CallQueue(10);
    queue.hold("a");
    for (const each of ["a", "b", "a"]) queue.push(call(each, "k"));
    queue.push(call("a"));
    expect(takeAll(queue)).toEqual([]);
    expect(queue.drain().map(name)).toEqual(["a", "b", "a", "a"]);
    expect(queue.depth).toBe(0);
  });

  test("hands out the call that waits longest, single or in a set", () => {
    const queue = new CallQueue(100);
    for (const each of [
      call("a", "1"),
      call("b", "2", together),
      call("c"),
      call("d", "3", together),
    ])
      queue.push(each);
    expect(queue.depth).toBe(4);
    expect(takeAll(queue)).toEqual(["a", "b+d", "c"]);
    expect(queue.depth).toBe(0);
  });

  test("leaves sets where they are while no lane is free", () => {
    const queue = new CallQueue(100);
    queue.push(call("a", "1", together));
    queue.push(call("b", "2"));
    expect(queue.appetite(0)).toBe(1);
    expect(queue.appetite(3)).toBe(2);
    expect(takeAll(queue, false)).toEqual(["b"]);
    expect(takeAll(queue)).toEqual(["a"]);
  });

  test("lets one call per key go at a time, in order", () => {
    const queue = new CallQueue(100);
    const calls = ["a", "b", "c"].map((each) => call(each, "k", together));
    for (const each of calls) queue.push(each);
    for (const each of calls) {
      expect(takeAll(queue)).toEqual([name(each)]);
      queue.finish(each);
    }
    expect(takeAll(queue)).toEqual([]);
  });

  test("puts work back to the front, with its key still taken", () => {
    const queue = new CallQueue(100);
    const first = call("a", "k");
    queue.push(first);
    queue.push(call("b", "k"));
    queue.push(call("c", "other"));
    expect(queue.take(true)).toBe(first);
    queue.again(first);
    expect(takeAll(queue)).toEqual(["a", "c"]);
    queue.finish(first);
    expect(takeAll(queue)).toEqual(["b"]);
  });

  test("is bounded by the calls that no transaction has taken", () => {
    const queue = new CallQueue(2);
    queue.push(call("a"));
    queue.push(call("b", "k"));
    expect(() => queue.push(call("c"))).toThrow(expect.objectContaining({ code: "QUEUE_FULL" }));
    queue.take(true);
    queue.push(call("d"));
    expect(queue.drain().map(name)).toEqual(["b", "d"]);
    expect(queue.depth).toBe(0);
  });

  test("can be emptied, also of calls behind a key whose call runs", () => {
    const queue = new CallQueue(100);
    const running = call("a", "k");
    for (const each of [running, call("b", "k"), call("c"), call("d", "k")]) queue.push(each);
    expect(queue.take(true)).toBe(running);
    expect(queue.drain().map(name)).toEqual(["b", "c", "d"]);
    expect(queue.depth).toBe(0);
    queue.push(call("e", "k"));
    expect(takeAll(queue)).toEqual([]);
    queue.finish(running);
    expect(takeAll(queue)).toEqual(["e"]);
  });

  test("keeps its promises under any schedule", () => {
    const step = fc.oneof(
      fc.record({
        act: fc.constant("push" as const),
        key: fc.constantFrom("a", "b", "c", undefined),
        many: fc.boolean(),
      }),
      fc.record({
        act: fc.constantFrom("take", "finish", "again", "withdraw"),
        which: fc.nat(),
      }),
    );
    const schedules = fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const model = new Model();
      for (const each of steps) {
        if (each.act === "push") model.push(each.key, each.many);
        else model[each.act](each.which);
        model.check();
      }
      model.finishAll();
    });
    expect(() => fc.assert(schedules)).not.toThrow();
  });
});

/**
 * The contract of the queue in its simplest form: every call once, those of a key in order and one
 * at a time.
 */
class Model {
  readonly #queue = new CallQueue(1_000);
  readonly #waiting: Call[] = [];
  readonly #running: Call[] = [];

  push(key: string | undefined, many: boolean): void {
    const added = call("x", key, many ? together : undefined);
    this.#queue.push(added);
    this.#waiting.push(added);
  }

  take(): void {
    const work = this.#queue.take(true);
    for (const each of work === undefined ? [] : callsOf(work)) {
      const sameKey = (other: Call): boolean =>
        other === each || (each.key !== undefined && other.key === each.key);
      assert.deepEqual(this.#running.filter(sameKey), []);
      assert.equal(this.#waiting.find(sameKey), each);
      this.#waiting.splice(this.#waiting.indexOf(each), 1);
      this.#running.push(each);
    }
  }

  finish(which: number): void {
    const [chosen] = this.#running.splice(which % this.#running.length || 0, 1);
    if (chosen !== undefined) this.#queue.finish(chosen);
  }

  again(which: number): void {
    const chosen = this.#running[which % this.#running.length || 0];
    if (chosen === undefined) return;
    this.#queue.again(chosen);
    assert.equal(this.#queue.take(true), chosen);
  }

  withdraw(which: number): void {
    const [chosen] = this.#waiting.splice(which % this.#waiting.length || 0, 1);
    if (chosen === undefined) return;
    assert.ok(this.#queue.withdraw(chosen));
    assert.ok(!this.#queue.withdraw(chosen));
  }

  check(): void {
    assert.equal(this.#queue.depth, this.#waiting.length);
  }

  finishAll(): void {
    while (this.#waiting.length + this.#running.length > 0) {
      this.take();
      while (this.#running.length > 0) this.finish(0);
    }
    this.check();
    assert.equal(this.#queue.appetite(9), 0);
  }
}
