/** Called by Next once when a server starts: the place for the worker. */
export async function register(): Promise<void> {
  // Also called for the edge runtime, which has neither files nor sockets.
  if (process.env["NEXT_RUNTIME"] !== "nodejs") return;
  const { fulfil, holdfast } = await import("./holdfast.ts");
  const opened = await holdfast();
  await opened.work([fulfil]);
  opened.closeOnSignals();
}
