import type { Encoded } from "../../../model/encoded.ts";
import { row, run } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";

/** What signs the tokens of this database; undefined as long as none was given out. */
export function* signingSecret(): Tx<Encoded | undefined> {
  const found = yield* row<{ readonly secret: Encoded }>(sql`
    SELECT secret FROM holdfast_await_secret WHERE id = 1`);
  return found?.secret;
}

/** The same, made when there is none yet. Of several who make it at once one wins. */
export function* madeSecret(newSecret: () => Encoded): Tx<Encoded> {
  const found = yield* signingSecret();
  if (found !== undefined) return found;
  const candidate = newSecret();
  yield* run(sql`
    INSERT INTO holdfast_await_secret (id, secret) VALUES (1, ${candidate}) ON CONFLICT (id) DO NOTHING`);
  return (yield* signingSecret()) ?? candidate;
}
