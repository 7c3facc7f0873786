import { setTimeout } from "node:timers/promises";
import { openHoldfast, workflow } from "holdfast";

interface Decision {
  readonly approve: boolean;
  readonly reason?: string;
}

// A person decides about large payments. The question is kept with its schema.
const pay = workflow("payments/pay", async (ctx, payment: { to: string; cents: number }) => {
  if (payment.cents < 10_000) return "paid";
  const question = ctx.external<Decision>({
    about: payment,
    schema: {
      type: "object",
      properties: { approve: { type: "boolean" }, reason: { type: "string" } },
      required: ["approve"],
    },
    timeout: "3 days",
    tags: ["payments"],
  });
  const decision = await question.result();
  if (decision === undefined) return "not decided";
  return decision.approve ? "paid" : `refused: ${decision.reason ?? "no reason"}`;
});

const holdfast = await openHoldfast(":memory:");
await holdfast.work([pay]);
const run = await holdfast.start(pay, { to: "ada", cents: 50_000 }, { id: "invoice-7" });

// Any process with the database can list the questions and answer them.
let open = await holdfast.questions.list({ tag: "payments" });
while (open.items.length === 0) {
  await setTimeout(5);
  open = await holdfast.questions.list({ tag: "payments" });
}
for (const { id, about } of open.items) {
  console.log(id, about);
  const answer = { approve: false, reason: "sent twice" };
  await holdfast.questions.answer(id, { approve: "yes" }).catch((error: Error) => {
    console.log(error.message);
  });
  console.log((await holdfast.questions.answer(id, answer)).kind);
  console.log((await holdfast.questions.answer(id, answer)).kind);
  const late = await holdfast.questions.answer(id, { approve: true });
  if (late.kind === "tooLate") console.log("too late:", JSON.stringify(late.result));
}
console.log(await run.result());
await holdfast.close();

// Output:
// invoice-7.o:1_1 { to: 'ada', cents: 50000 }
// The answer to invoice-7.o:1_1 does not fit the schema of the question: $.approve must be boolean. The question stays open.
// accepted
// replayed
// too late: {"kind":"completed","value":{"approve":false,"reason":"sent twice"}}
// refused: sent twice
