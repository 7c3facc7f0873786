import { activity, isRunFailedError, NonRetryableError, openHoldfast, workflow } from "holdfast";

interface Trip {
  readonly id: string;
  readonly to: string;
}

/** Stand-ins for remote services, where the caller names its bookings. */
const flights = new Map([["trip-0", "Rome"]]);
const rooms = new Map<string, string>();

// Both may run twice, since a process may die before it records the outcome.
// The id of the trip makes the second call change nothing.
const bookFlight = activity("flight/book", async (_, trip: Trip) => {
  flights.set(trip.id, trip.to);
});
const cancelFlight = activity("flight/cancel", async (_, trip: Trip) => {
  flights.delete(trip.id);
});
const bookHotel = activity("hotel/book", async (_, trip: Trip) => {
  // A retry would not help, so there is none.
  throw new NonRetryableError(`no room in ${trip.to}`);
});
const cancelHotel = activity("hotel/cancel", async (_, trip: Trip) => {
  rooms.delete(trip.id);
});

// Undoes finished bookings in reverse when a later one fails or the run is
// cancelled. If the process dies while undoing, another one resumes.
const plan = workflow("trips/plan", async (ctx, trip: Trip) => {
  const undo: (() => Promise<void>)[] = [];
  try {
    // Noted before the call, because a booking may succeed although the call
    // throws, for example when the run is cancelled. So each undo may run
    // without a booking, and must then do nothing.
    undo.push(() => ctx.call(cancelFlight, trip));
    await ctx.call(bookFlight, trip);
    undo.push(() => ctx.call(cancelHotel, trip));
    await ctx.call(bookHotel, trip);
    return "booked";
  } catch (error) {
    for (const step of undo.toReversed()) await step();
    throw error;
  }
});

const holdfast = await openHoldfast(":memory:");
await holdfast.work([plan, bookFlight, cancelFlight, bookHotel, cancelHotel]);
const trip = { id: "trip-1", to: "Oslo" };
const run = await holdfast.start(plan, trip, { id: trip.id });
try {
  await run.result();
} catch (error) {
  if (!isRunFailedError(error)) throw error;
  console.log(error.kind, "in", error.function);
  console.log((error.cause as Error).message.replace(/ \(at .*/, ""));
}
console.log("still booked:", [...flights.values(), ...rooms.values()]);
await holdfast.close();

// Output:
// failed in trips/plan
// Run trip-1.o:2_1 of hotel/book failed (attempt 1): NonRetryableError: no room in Oslo
// still booked: [ 'Rome' ]
