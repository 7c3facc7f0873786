import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { isHoldfastError, openHoldfast, signal, workflow } from "holdfast";

// A web server and its worker in one process, on one file.
const approval = signal<{ ok: boolean }>("approval");

const order = workflow("shop/order", async (ctx, item: string) => {
  const cents = await ctx.step("ask for the price", () => item.length * 100);
  const reply = await ctx.receive(approval, { timeout: "1 day" });
  return reply?.ok === true ? `${item} for ${cents} cents` : "refused";
});

// Before it listens, runs that were open at the last stop resume.
const holdfast = await openHoldfast(process.env["DATABASE_URL"] ?? "./shop.db");
await holdfast.work([order]);

const app = new Hono();

// The client chooses the id, so it may repeat the request after a failure.
// The answer comes at once: no connection stays open for a day.
app.put("/orders/:id", async (context) => {
  const { item } = await context.req.json<{ item: string }>();
  const id = context.req.param("id");
  await holdfast.start(order, item, { id });
  return context.json({ id }, 202);
});

app.get("/orders/:id", async (context) => {
  const run = holdfast.get(order, context.req.param("id"));
  const status = await run.status();
  if (status !== "completed") return context.json({ status });
  return context.json({ status, result: await run.result() });
});

app.post("/orders/:id/approval", async (context) => {
  const run = holdfast.get(order, context.req.param("id"));
  const reply = await context.req.json<{ ok: boolean }>();
  // A key makes the second click the same as the first.
  await run.signal(approval, reply, { key: "decision" });
  return context.body(null, 204);
});

// Codes are stable; messages are for people.
app.onError((error, context) => {
  if (!isHoldfastError(error)) return context.text("Internal error", 500);
  const { code, message } = error;
  if (code === "EXECUTION_NOT_FOUND") return context.json({ code }, 404);
  if (code === "EXECUTION_EXISTS") return context.json({ code }, 409);
  return context.json({ code, message }, error.retryable ? 503 : 400);
});

const server = serve(
  {
    fetch: app.fetch,
    hostname: "127.0.0.1",
    port: Number(process.env["PORT"] ?? 3000),
  },
  ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
);

// On a stop signal, takes no more requests and lets running bodies be recorded.
process.once("SIGTERM", () => server.close());
holdfast.closeOnSignals();
