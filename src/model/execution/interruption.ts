import type { CancellationCause, ExecutionEvent } from "./event.ts";
import type { Mismatch } from "./mismatch.ts";

/** The interruption of an execution, with its start and reason. `kind` is the lifecycle. */
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
      /** The code of the reason, such as `NONDETERMINISM`. */
      readonly code: string;
      readonly reason: string;
      /** The code version under which it was parked. */
      readonly codeVersion: string | null;
      /** The recorded and the actual call, if the code is `NONDETERMINISM`. */
      readonly mismatch?: Mismatch;
    };

/** Returns the interruption that an event causes; undefined when it causes none. */
export function interruptionBy(event: ExecutionEvent, since: number): Interruption | undefined {
  switch (event.kind) {
    case "paused":
      return { kind: "paused", since };
    case "cancellationRequested": {
      const { reason, cause } = event;
      return { kind: "cancelling", since, reason, cause };
    }
    case "parked": {
      const { code, reason, codeVersion, mismatch } = event;
      const parked = { kind: "parked", since, code, reason, codeVersion } as const;
      return mismatch === undefined ? parked : { ...parked, mismatch };
    }
    default:
      return undefined;
  }
}
