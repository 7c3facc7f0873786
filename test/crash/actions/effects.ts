import { awaitEvents, effects, processEffects } from "../../../src/effects.ts";
import type { Database } from "../../../src/kernel.ts";
import type { Orders } from "../prepare-actions.ts";

/** A turn of session "chat". */
export const scope = { session: "chat", kind: "turn", id: "t1" };

export const charge = { kind: "tool", input: { cents: 500 } };

export function start(database: Database): Promise<object> {
  const draft = { id: "build", kind: "tool" };
  return processEffects(database).start(scope, draft, { grant: "chat" });
}

export function answer(database: Database, { token }: Orders): Promise<object> {
  return awaitEvents(database).resolve(token, { from: "outside" });
}

/** Two transactions. */
export function execute(
  database: Database,
  _: Orders,
  say: (line: string) => unknown,
): Promise<string> {
  return effects(database).execute(scope, "charge", charge, () => {
    say("runs");
    return "by the child";
  });
}
