import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { LoggedEvent, LoggedResponse } from "./event.ts";
import { spansOf } from "./spans.ts";

function stepDone(call: number, name: string, more: object = {}) {
  return { kind: "stepFinished", call, name, outcome: "completed", ...more };
}

describe("[RN1] what is damaged or unknown in a log", () => {
  test("is skipped, and the rest is drawn", () => {
    const damaged = [
      null,
      undefined,
      7,
      {},
      { version: 1, at: 5 },
      { version: 1, at: 5, event: null },
      { version: 1, at: 5, event: { kind: 7 } },
      { version: 1, at: Number.NaN, event: stepDone(9, "x") },
      { version: -1, at: 5, event: stepDone(9, "x") },
      { version: 1, at: 5, event: { kind: "danced" } },
      { version: 1, at: 5, event: { kind: "stepFinished" } },
      { version: 1, at: 5, event: { kind: "stepFinished", call: 9 } },
      { version: 1, at: 5, event: { kind: "childRequested", call: 9, child: 4 } },
      { version: 1, at: 5, event: { kind: "delayRequested", call: 9, delay: "d" } },
      { version: 1, at: 5, event: { kind: "receiveRequested", call: 9 } },
      { version: 1, at: 5, event: { kind: "receiveTimedOut", call: 9 } },
      { version: 1, at: 5, event: stepDone(3, "torn", { ran: [3, 4], seen: "many" }) },
    ];
    const responses = [null, {}, { seq: 1, at: 1, response: {} }, { seq: "a", at: 1 }];
    const sound = [{ version: 2, at: 10, event: stepDone(1, "a", { ran: [-4, 0] }) }];
    expect(
      spansOf(
        [...damaged, ...sound] as unknown as readonly LoggedEvent<unknown>[],
        responses as unknown as readonly LoggedResponse<unknown>[],
      ),
    ).toMatchObject([
      { name: "torn", began: 5, ended: 5 },
      { name: "a", began: 6, ended: 10 },
    ]);
  });

  test("is skipped, whatever it is", () => {
    const field = fc.oneof(
      fc.constantFrom("stepFinished", "locked", "continued", "childRequested", "signal", "child"),
      fc.anything(),
    );
    const inner = fc.dictionary(
      fc.constantFrom("kind", "call", "seen", "name", "ran", "child", "delay", "holder", "signal"),
      field,
    );
    const item = fc.oneof(
      fc.anything(),
      fc.record({ version: fc.nat(), seq: fc.nat(), at: fc.nat(), event: inner, response: inner }),
    );
    fc.assert(
      fc.property(fc.array(item), fc.array(item), (events, responses) => {
        const bars = spansOf(
          events as readonly LoggedEvent<unknown>[],
          responses as readonly LoggedResponse<unknown>[],
        );
        for (const { began, ended } of bars) {
          expect(Number.isSafeInteger(began)).toBe(true);
          expect(ended === null || ended >= began).toBe(true);
        }
      }),
    );
  });
});
