import type { Database } from "../../../src/sql/database.ts";
import { append, create, finish, locked } from "./records.ts";

/** One execution of each status at 100, and a child with a child below "c". */
export async function standingExecutions(database: Database): Promise<void> {
  await create(database, "a", { at: 10, tags: ["red", "blue"] });
  await create(database, "b", { at: 20, scheduledAt: 500 });
  await create(database, "c", { at: 30, function: "orders/refund" });
  await append(database, "c", 1, 31, locked(900));
  await create(database, "c.n:x_1", { at: 35, function: "mail/send" });
  await create(database, "c.n:x_1.n:y_1", { at: 36, function: "mail/send" });
  await create(database, "d", { at: 40, isPaused: true });
  await create(database, "e", { at: 50, role: "external" });
  await create(database, "f", { at: 60 });
  await append(database, "f", 1, 61, {
    kind: "cancellationRequested",
    reason: null,
    cause: "request",
  });
  await create(database, "g", { at: 70 });
  await append(database, "g", 1, 71, {
    kind: "parked",
    code: "NONDETERMINISM",
    reason: "the code has changed",
    codeVersion: null,
  });
  await create(database, "h", { at: 80, tags: ["red"] });
  await finish(database, "h", 81, { kind: "completed", value: 1 });
  await create(database, "i", { at: 90 });
  await finish(database, "i", 91, {
    kind: "failed",
    error: { name: "Error", message: "no" },
  });
  await create(database, "j", { at: 92 });
  await finish(database, "j", 93, { kind: "cancelled" });
  await create(database, "k", { at: 94, function: "mail/send" });
  await finish(database, "k", 95, { kind: "timedOut" });
}
