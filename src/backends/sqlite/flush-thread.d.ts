/** Faults that tests inject: a slower disk, or one that fails after n flushes. */
export interface FlushFaults {
  readonly delayMs?: number;
  failAfter?: number;
}

export function flushFile(
  fd: number,
  path: string,
  faults: FlushFaults | undefined,
): void;
