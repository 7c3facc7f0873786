import { openHoldfast, schedule, workflow } from "holdfast";

const sales = [300, 200];

const report = workflow("reports/sales", async (ctx, input: { days: number }) => {
  const cents = await ctx.step("add up", () => sales.reduce((sum, each) => sum + each, 0));
  return `${cents} cents in ${input.days} day`;
});
const beat = workflow("beat", async () => "alive");

const holdfast = await openHoldfast(":memory:");
// Each instant starts one run, however many processes have the schedules.
await holdfast.work([
  report,
  beat,
  schedule("nightly", { cron: "30 2 * * *", overlap: "queue" }, report, {
    days: 1,
  }),
  schedule("heartbeat", { every: "1 second" }, beat),
]);

const { items } = await holdfast.schedules.list();
for (const { name, next, overlap } of items)
  if (name === "nightly")
    console.log(
      name,
      next.map((instant) => new Date(instant).toISOString().slice(11, 16)),
      overlap,
    );

// Fires now, outside the cadence. The key makes repeated calls start one run.
const run = await holdfast.schedules.fire("nightly", { key: "first-look" });
console.log(run.id, "→", await run.result());

// Its runs are found by their tag.
for (;;) {
  const [beaten] = (await holdfast.runs.list({ tag: "schedule:heartbeat" })).items;
  if (beaten !== undefined) {
    console.log(await holdfast.get(beat, beaten.id).result());
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
}
console.log("paused:", await holdfast.schedules.pause("heartbeat"));
await holdfast.close();

// Output:
// nightly [ '02:30', '02:30', '02:30', '02:30', '02:30' ] queue
// nightly@fire:first-look → 500 cents in 1 day
// alive
// paused: true
