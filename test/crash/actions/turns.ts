import type { Database } from "../../../src/kernel.ts";
import { sessions } from "../../../src/sessions.ts";
import type { Orders } from "../prepare-actions.ts";
import { wholeTurn } from "../turn.ts";

export async function commit(database: Database, { turn }: Orders): Promise<object> {
  const store = sessions(database);
  const handle = await store.open("s");
  if (handle === undefined) throw new Error("There is no session.");
  return store.commit(handle, wholeTurn(turn));
}
