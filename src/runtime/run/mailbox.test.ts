import { expect, test } from "vitest";
import { Mailbox, type Receiver } from "./mailbox.ts";

test("a time-out of a receive is told once while it is being recorded, and waits on for its delivery", () => {
  const mailbox = new Mailbox();
  const [soon, late]: readonly [Receiver, Receiver] = [
    { call: 1, signal: "go", expiresAt: 10 },
    { call: 2, signal: "go", expiresAt: 20 },
  ];
  mailbox.wait(soon);
  mailbox.wait(late);
  expect(mailbox.expire(9)).toEqual([]);
  expect(mailbox.expire(10)).toEqual([soon]);
  expect(mailbox.expire(10)).toEqual([]);
  expect(mailbox.nextExpiry).toBe(20);
  expect(mailbox.receivers).toEqual([soon, late]);
  expect(mailbox.expire(30)).toEqual([late]);
  expect(mailbox.expire(30)).toEqual([]);
  expect(mailbox.nextExpiry).toBeUndefined();
  mailbox.forgetCall(1);
  expect(mailbox.receivers).toEqual([late]);
});
