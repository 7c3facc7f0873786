import type { Database } from "../../../src/sql/database.ts";
import { runtimeContext } from "../../../src/open/open-holdfast.ts";
import { holdfastOver, type Holdfast } from "../../../src/runtime/client/holdfast.ts";
import type { RuntimeEvent } from "../../../src/runtime/runtime-event.ts";
import type { StoreOptions } from "../../../src/stores/context.ts";
import { withPlace } from "../backend.ts";
import type { Backend, Place } from "../backend.ts";

/** A runtime over a database of its own, and what it said. */
export interface RuntimeFixture {
  readonly holdfast: Holdfast;
  readonly database: Database;
  readonly place: Place;
  readonly said: readonly RuntimeEvent[];
  /** How long each that was closed would have waited for its database, in milliseconds. */
  readonly closings: readonly number[];
  /** Another one over the same database, as another part of the program would have; on a clock of its own if given, and through what stands before the database. */
  readonly another: (options?: StoreOptions, before?: Database) => Promise<Holdfast>;
}

/** A test body with a runtime that has nothing in it; all is closed afterwards. */
export function onRuntime(
  backend: Backend,
  body: (fixture: RuntimeFixture) => Promise<void>,
): () => Promise<void> {
  return () =>
    withPlace(backend, async (place) => {
      const database = await place.open();
      const said: RuntimeEvent[] = [];
      const closings: number[] = [];
      const opened: Holdfast[] = [];
      const another = async (
        options: StoreOptions = {},
        before: Database = database,
      ): Promise<Holdfast> => {
        const context = await runtimeContext(before, options, (event) => {
          said.push(event);
        });
        // The database stays open, for the next test.
        const made = holdfastOver(context, async (timeoutMs) => {
          closings.push(timeoutMs);
        });
        opened.push(made);
        return made;
      };
      const holdfast = await another();
      try {
        await body({ holdfast, database, place, said, closings, another });
      } finally {
        await Promise.all(opened.map((made) => made.close({ timeout: "2s" })));
      }
    });
}
