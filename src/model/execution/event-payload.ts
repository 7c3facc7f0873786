import type { ExecutionEvent } from "./event.ts";

/** The field of each kind that holds a user's value. Kinds without such a field are missing. */
const payloadFields = {
  created: "input",
  continued: "input",
  attemptFailed: "error",
  stepAttemptFailed: "error",
  finished: "result",
  stepFinished: "value",
  transactionFinished: "value",
} as const satisfies Partial<Record<ExecutionEvent["kind"], string>>;

export function payloadField(kind: string): string | undefined {
  return Object.hasOwn(payloadFields, kind)
    ? payloadFields[kind as keyof typeof payloadFields]
    : undefined;
}
