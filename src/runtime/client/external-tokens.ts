import { isSameToken } from "../../model/ids/token.ts";
import { parseExecutionId, type ExecutionId } from "../../model/ids/execution-id.ts";
import { tokenInvalid } from "../../model/effect/await-token.ts";
import { bytesOfHex } from "../../model/values/hex.ts";
import type { Database } from "../../sql/database.ts";
import { awaitContext, ensureSecret } from "../../stores/effect/await/context.ts";

/**
 * Tokens of externals: the id of the execution that stands for one, and a
 * signature that nobody without the database's secret can make. The same
 * whenever the run that made it is replayed.
 */
export interface ExternalTokens {
  tokenOf(external: ExecutionId): string;
  /** @throws HoldfastError `AWAIT_TOKEN_INVALID` */
  externalOf(token: string): ExecutionId;
}

/** Reads the secret of the database, or makes it. */
export async function externalTokens(database: Database): Promise<ExternalTokens> {
  const context = awaitContext(database, undefined);
  const secret = await database.write("ensureSecret", () => ensureSecret(context), {
    isolation: "readCommitted",
  });
  const key = bytesOfHex(secret);
  const tokenOf = (external: ExecutionId): string => {
    const text = new TextEncoder().encode(`holdfast:external:1:${external}`);
    return `${external}~${database.bytes.hmacSha256Hex(key, text)}`;
  };
  return {
    tokenOf,
    externalOf(token) {
      const [id] = typeof token === "string" ? token.split("~") : [];
      let external: ExecutionId;
      try {
        external = parseExecutionId(id ?? "");
      } catch {
        throw tokenInvalid();
      }
      if (isSameToken(tokenOf(external), token)) return external;
      throw tokenInvalid();
    },
  };
}
