import { isHoldfastError } from "../../model/errors.ts";
import { schemaViolation } from "../../model/trigger/payload-schema.ts";
import { parseSessionId } from "../../model/ids/session-id.ts";
import { inputOf, triggeredProcess, type Registrant } from "../../model/trigger/trigger.ts";
import { run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { grant as grantHandle, type GrantHandle } from "../process/grant-row.ts";
import { newProcess, type NewProcess } from "../process/parts.ts";
import { isSameCause, register } from "../process/registration-row.ts";
import type { SubscriptionContent } from "./content.ts";
import type { TriggerContext } from "./context.ts";
import type { Occurrence, TriggerDelivery, DeliveryRefusal } from "./occurrence-row.ts";
import { isGone, type Subscription } from "./subscription-row.ts";

/**
 * The effects of one occurrence on one subscription. The id of the process is a hash of the
 * occurrence (key, source, payload) and the subscription. An occurrence that retention removed and
 * that is recorded again finds its process; another occurrence under the old key does not. An error
 * of one subscription (its schema, a deleted wake target) is written into the delivery as a
 * refusal. The other subscriptions still get the occurrence.
 */

/** A subscription that gets an occurrence. */
export interface Addressee {
  readonly row: number;
  readonly subscription: Subscription;
}

/** An occurrence that is being recorded, with its decoded payload. */
export interface Recorded {
  readonly row: number;
  readonly payloadHash: string;
  readonly occurrence: Occurrence;
}

/**
 * Registers the process that an occurrence starts for a subscription, with its handle. Records the
 * delivery, or the reason of the refusal.
 */
export function* deliver(
  context: TriggerContext,
  recorded: Recorded,
  { row: subscriptionRow, subscription }: Addressee,
  at: number,
): Tx<TriggerDelivery> {
  const order = ordered(context, recorded, subscription, at);
  const refusal = "refusal" in order ? order.refusal : yield* start(order, subscription);
  const process = refusal === null && "process" in order ? order.process.id : null;
  yield* run(sql`
    INSERT INTO holdfast_trigger_delivery (occurrence, subscription, revision, process, refusal)
    VALUES (${recorded.row}, ${subscriptionRow}, ${subscription.revision}, ${process},
      ${refusal === null ? null : JSON.stringify(refusal)})`);
  const { key, registrant, revision } = subscription;
  return { subscription: { key, registrant, revision }, process, refusal };
}

type Order =
  { readonly process: NewProcess; readonly at: number } | { readonly refusal: DeliveryRefusal };

/**
 * The process that a subscription asks for. It is pure, so a transaction that runs again gets the
 * same process.
 */
function ordered(
  context: TriggerContext,
  { occurrence, payloadHash }: Recorded,
  { key, registrant, content }: Subscription,
  at: number,
): Order {
  const { payloadSchema, target } = content;
  const { payload, source, occurredAt } = occurrence;
  const violation = payloadSchema === null ? undefined : schemaViolation(payloadSchema, payload);
  if (violation !== undefined) return { refusal: { code: "EVENT_PAYLOAD_INVALID", ...violation } };
  const event = { source, occurrence: occurrence.key, occurredAt, payload };
  const cause = { key: occurrence.key, source, payloadHash };
  const id = triggeredProcess(context.hash, cause, registrant, key);
  const draft = {
    ...target,
    id,
    label: target.label ?? content.label,
    input: inputOf(content.arguments, event),
    originator: registrant,
    causedBy: `occurrence:${occurrence.key}`,
  };
  try {
    return { process: newProcess(context.codec, draft, at), at };
  } catch (error) {
    // An input that is too large, for example, must not affect the other subscriptions.
    if (isHoldfastError(error)) return { refusal: { code: error.code } };
    throw error;
  }
}

/** Registers the process and grants its handle, or returns the reason why it cannot. */
function* start(
  { process, at }: Extract<Order, { readonly process: NewProcess }>,
  { registrant, content: { grant } }: Subscription,
): Tx<DeliveryRefusal | null> {
  try {
    const { existed } = yield* register(process);
    // An existing process has its handle already, or the handle was moved.
    if (registrant !== null && grant !== null && !existed)
      yield* grantHandle(granted(process, registrant, grant, at));
    return null;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    // The occurrence was recorded before and removed as old. Another time or revision does not make
    // it a different occurrence.
    if (error.code === "PROCESS_CONFLICT" && (yield* isSameCause(process))) return null;
    return { code: error.code };
  }
}

/**
 * True for a missing wake target or a taken id: nothing was written yet, and nothing else is wrong.
 */
function isRefusal(error: unknown): error is { readonly code: string } {
  return isGone(error) || (isHoldfastError(error) && error.code === "PROCESS_CONFLICT");
}

function granted(
  { id }: NewProcess,
  registrant: Registrant,
  { kind, label }: NonNullable<SubscriptionContent["grant"]>,
  at: number,
): GrantHandle {
  const { id: session, generation } = registrant;
  return {
    process: id,
    scope: {
      session: { id: parseSessionId(session), generation },
      frame: null,
    },
    descriptor: { kind, label },
    at,
  };
}
