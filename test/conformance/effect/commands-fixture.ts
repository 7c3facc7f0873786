import { run, sql } from "../../../src/kernel.ts";
import { processes, type Processes } from "../../../src/processes.ts";
import { processEffects, type ProcessEffects } from "../../../src/effects.ts";
import type { Backend } from "../backend.ts";
import { createSession } from "../lease/leased-sessions.ts";
import { inEffects } from "./fixture.ts";
import type { EffectFixture } from "./fixture.ts";

/** Commands to processes as effects, as the tests of them need them. */
export interface CommandFixture extends EffectFixture {
  readonly commands: ProcessEffects;
  readonly registry: Processes;
}

export type InCommandFixture = (
  body: (fixture: CommandFixture) => Promise<void>,
) => () => Promise<void>;

/** The fixture of effects with no processes, and a session "other" beside "s". */
export function inCommands(backend: Backend): InCommandFixture {
  const effects = inEffects(backend);
  return (body) =>
    effects(async (at) => {
      const { database, clock } = at;
      await database.write("empty", function* () {
        yield* run(sql`DELETE FROM holdfast_process`);
        yield* run(sql`DELETE FROM holdfast_process_event`);
        yield* run(sql`DELETE FROM holdfast_process_grant`);
      });
      await createSession(database, "other");
      const commands = processEffects(database, { clock });
      await body({ ...at, commands, registry: processes(database, { clock }) });
    });
}
