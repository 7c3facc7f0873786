import { isSameToken } from "../../model/ids/token.ts";
import { parseExecutionId, type ExecutionId } from "../../model/ids/execution-id.ts";
import { tokenInvalid } from "../../model/effect/await-token.ts";
import { bytesOfHex } from "../../model/values/hex.ts";
import type { HoldfastError } from "../../model/errors.ts";
import type { Database } from "../../sql/database.ts";
import type { Tx } from "../../sql/operation.ts";
import type { StoreOptions } from "../../stores/context.ts";
import { awaitContext, ensureSecret } from "../../stores/effect/await/context.ts";

/**
 * Tokens of externals. A token is the id of the external's execution and a signature, which
 * only the holder of the database's secret can make. Each replay of the run gives the same
 * token.
 */
export interface ExternalTokens {
  tokenOf(external: ExecutionId): string;
  /** @throws HoldfastError `AWAIT_TOKEN_INVALID` */
  externalOf(token: string): ExecutionId;
}

/** Reads the secret of the database, or creates it. The first open thereby records the database's codec. */
export async function externalTokens(
  database: Database,
  { payload }: StoreOptions,
): Promise<ExternalTokens> {
  const context = awaitContext(database, payload === undefined ? {} : { payload });
  const { seal } = context;
  function* secretOf(): Tx<string | HoldfastError> {
    yield* seal.learn("write");
    return seal.refusal ?? (yield* ensureSecret(context));
  }
  const secret = await database.write("ensureSecret", secretOf, { isolation: "readCommitted" });
  if (typeof secret !== "string") return refusing(secret);
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

/** Tokens for a caller without the codec of the database, who can still inspect and control runs. */
function refusing(refusal: HoldfastError): ExternalTokens {
  const refuse = (): never => {
    throw refusal;
  };
  return { tokenOf: refuse, externalOf: refuse };
}
