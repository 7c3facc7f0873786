import type { CancellationCause, ExecutionEvent } from "./event.ts";

/** Since when and why an execution does not simply go on. `kind` is its lifecycle. */
export type Interruption =
  | { readonly kind: "paused"; readonly since: number }
  | {
      readonly kind: "cancelling";
      readonly since: number;
      readonly reason: string | null;
      readonly cause: CancellationCause;
    }
  | {
      readonly kind: "parked";
      readonly since: number;
      /** What the reason is about, such as `NONDETERMINISM`. */
      readonly code: string;
      readonly reason: string;
      /** The code under which it was parked. */
      readonly codeVersion: string | null;
    };

/** What an event at an instant has interrupted; undefined for one that interrupts nothing. */
export function interruptionBy(event: ExecutionEvent, since: number): Interruption | undefined {
  switch (event.kind) {
    case "paused":
      return { kind: "paused", since };
    case "cancellationRequested": {
      const { reason, cause } = event;
      return { kind: "cancelling", since, reason, cause };
    }
    case "parked": {
      const { code, reason, codeVersion } = event;
      return { kind: "parked", since, code, reason, codeVersion };
    }
    default:
      return undefined;
  }
}
