import {
  activity,
  isRunFailedError,
  NonRetryableError,
  openHoldfast,
  workflow,
} from "holdfast";

interface Trip {
  readonly to: string;
}

const booked: string[] = [];

const bookFlight = activity("flight/book", async (_, trip: Trip) => {
  booked.push(`flight to ${trip.to}`);
});
const cancelFlight = activity("flight/cancel", async (_, trip: Trip) => {
  booked.splice(booked.indexOf(`flight to ${trip.to}`), 1);
});
const bookHotel = activity("hotel/book", async (_, trip: Trip) => {
  // Trying again would not help, so it is not tried again.
  throw new NonRetryableError(`no room in ${trip.to}`);
});

// What was done is undone in reverse when a later part fails, or when the run
// is cancelled. If the process dies while undoing, another one goes on.
const plan = workflow("trips/plan", async (ctx, trip: Trip) => {
  const undo: (() => Promise<void>)[] = [];
  try {
    // Noted before it is done: cancelled meanwhile, the call would not return.
    undo.push(() => ctx.call(cancelFlight, trip));
    await ctx.call(bookFlight, trip);
    await ctx.call(bookHotel, trip);
    return "booked";
  } catch (error) {
    for (const step of undo.toReversed()) await step();
    throw error;
  }
});

const holdfast = await openHoldfast(":memory:");
await holdfast.work([plan, bookFlight, cancelFlight, bookHotel]);
const run = await holdfast.start(plan, { to: "Oslo" }, { id: "trip-1" });
try {
  await run.result();
} catch (error) {
  if (!isRunFailedError(error)) throw error;
  console.log(error.kind, "in", error.function);
  console.log((error.cause as Error).message.replace(/ \(at .*/, ""));
}
console.log("still booked:", booked);
await holdfast.close();

// Output:
// failed in trips/plan
// Run trip-1.o:2_1 of hotel/book failed (attempt 1): NonRetryableError: no room in Oslo
// still booked: []
