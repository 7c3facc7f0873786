import type { Clock } from "../../src/model/time/clock.ts";
import type { Database } from "../../src/sql/database.ts";

/** What every suite needs of a backend; test/backends/ has one for each. */
export interface Backend {
  readonly name: string;
  /** False in memory: what is closed is gone, and nobody else can open it. */
  readonly survives: boolean;
  /** A new place without a database in it. */
  readonly place: () => Promise<Place>;
  /** One in which our tables may be already, where that is sooner to be had. */
  readonly usedPlace?: () => Promise<Place>;
}

export interface Place {
  open(options?: PlaceOptions): Promise<Database>;
  /** Runs SQL past Holdfast, as somebody with a database shell would. */
  shell(...statements: readonly string[]): Promise<readonly object[]>;
  /** Closes what is open and removes the place. */
  dispose(): Promise<void>;
}

export interface PlaceOptions {
  readonly clock?: Clock;
  readonly queueCalls?: number;
  /** For tests that count on being told: a poll would find what no hint told. */
  readonly isWithoutPoll?: boolean;
}

/** Runs a test body with a place that is gone afterwards. */
export async function withPlace(
  backend: Backend,
  body: (place: Place) => Promise<void>,
): Promise<void> {
  const place = await backend.place();
  try {
    await body(place);
  } finally {
    await place.dispose();
  }
}

/** The same with an open database whose log tables exist. */
export function withDatabase(
  backend: Backend,
  body: (database: Database, place: Place) => Promise<void>,
): Promise<void> {
  return withPlace(backend, async (place) => {
    const database = await place.open();
    await body(database, place);
  });
}

/** The error of a promise that must reject, for looking at its parts. */
export async function rejection(promise: Promise<unknown>): Promise<
  Error & {
    readonly code?: string;
    readonly retryable?: boolean;
    readonly details?: Record<string, unknown>;
  }
> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error("Expected a rejection, but the promise was fulfilled.");
}
