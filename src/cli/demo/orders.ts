import { appendFileSync } from "node:fs";
import { systemClock } from "../../host/clock.ts";
import { sleep } from "../../host/timers.ts";
import {
  activity,
  workflow,
  type DurableFunction,
  type Workflow,
} from "../../runtime/definition/definitions.ts";

/** A side effect of a demo step: a line of a file, written when the step starts. */
export interface SideEffect {
  readonly order: string;
  readonly step: string;
  readonly process: number;
  readonly at: number;
  /** The same key for all attempts of one step of one order. */
  readonly idempotencyKey: string;
}

export interface OrdersContext {
  /** The file of side effects. */
  readonly file: string;
  readonly paceMs: number;
  /** Called when a step starts, and when it ends. */
  readonly tell: (told: StepTold) => void;
}

/** A worker's message about its current step. */
export interface StepTold {
  readonly kind: "began" | "ended";
  readonly order: string;
  readonly step: string;
}

/** The steps of an order, in sequence. */
export const orderSteps = ["reserve stock", "charge card", "print label", "send mail"] as const;

/** The courier's time, in steps. */
const courierPaces = 4;
/** The printer's time, in steps: long enough for the kill to interrupt it on a slow machine. */
const printerPaces = 3;

/**
 * The workflow of the demo. A killed step has left its side effect but no
 * record, so it runs again: the demo counts these.
 */
export function orderFunctions(context: OrdersContext): {
  readonly fulfil: Workflow<string, string>;
  readonly functions: readonly DurableFunction<never, unknown>[];
} {
  const { paceMs } = context;
  const charge = activity("billing/charge", async (ctx, order: string) => {
    await doing(context, order, "charge card", ctx.idempotencyKey);
    return `receipt of ${order}`;
  });
  const fulfil = workflow("orders/fulfil", async (ctx, order: string) => {
    await ctx.step("reserve stock", ({ idempotencyKey }) =>
      doing(context, order, "reserve stock", idempotencyKey),
    );
    const receipt = await ctx.call(charge, order);
    await ctx.step("print label", ({ idempotencyKey }) =>
      doing(context, order, "print label", idempotencyKey, printerPaces),
    );
    await ctx.sleep(courierPaces * paceMs);
    await ctx.step("send mail", ({ idempotencyKey }) =>
      doing(context, order, "send mail", idempotencyKey),
    );
    return receipt;
  });
  return { fulfil, functions: [fulfil, charge] };
}

async function doing(
  { file, paceMs, tell }: OrdersContext,
  order: string,
  step: string,
  idempotencyKey: string,
  paces = 1,
): Promise<void> {
  const effect: SideEffect = {
    order,
    step,
    process: process.pid,
    at: systemClock.now(),
    idempotencyKey,
  };
  appendFileSync(file, `${JSON.stringify(effect)}\n`);
  tell({ kind: "began", order, step });
  await sleep(paces * paceMs);
  tell({ kind: "ended", order, step });
}
