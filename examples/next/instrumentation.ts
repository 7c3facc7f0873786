/** Starts the worker. Next calls it once when a server starts. */
export async function register(): Promise<void> {
  // Next also calls it for the edge runtime, which has neither files nor sockets.
  if (process.env["NEXT_RUNTIME"] !== "nodejs") return;
  const { fulfil, holdfast } = await import("./holdfast.ts");
  const opened = await holdfast();
  await opened.work([fulfil]);
  opened.closeOnSignals();
}
