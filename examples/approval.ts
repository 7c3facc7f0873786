import { openHoldfast, signal, workflow } from "holdfast";

// A person decides. Until then the run needs no memory, no timer and no worker.
const decision = signal<{ by: string; approved: boolean }>("decision");

const expense = workflow("expenses/approve", async (ctx, cents: number) => {
  if (cents < 10_000) return "approved without asking";
  const reminders: number[] = [];
  for (let reminder = 0; reminder < 3; reminder += 1) {
    const answer = await ctx.receive(decision, { timeout: "20ms" });
    if (answer !== undefined) return `${answer.approved ? "approved" : "refused"} by ${answer.by}`;
    reminders.push(
      await ctx.step(`remind ${reminder}`, () => {
        console.log(`${ctx.id}: please decide`);
        return reminder;
      }),
    );
  }
  return `refused after ${reminders.length} reminders`;
});

const holdfast = await openHoldfast(":memory:");
await holdfast.work([expense]);

const small = await holdfast.start(expense, 500);
console.log(await small.result());

// Any process that has the id can decide, before or after the run asks.
const large = await holdfast.start(expense, 50_000, { id: "trip-to-oslo" });
await large.signal(decision, { by: "ada", approved: true });
console.log(await large.result());

const forgotten = await holdfast.start(expense, 50_000, { id: "lunch" });
console.log(await forgotten.result());
await holdfast.close();

// Output:
// approved without asking
// approved by ada
// lunch: please decide
// lunch: please decide
// lunch: please decide
// refused after 3 reminders
