import { fulfil, holdfast } from "../../../../holdfast.ts";

interface Given {
  readonly params: Promise<{ readonly id: string }>;
}

/** Starts an order, or finds the one with that id, so the client may repeat the request. */
export async function PUT(request: Request, given: Given): Promise<Response> {
  const { id } = await given.params;
  const { item } = (await request.json()) as { item: string };
  await (await holdfast()).start(fulfil, item, { id });
  return Response.json({ id }, { status: 202 });
}

export async function GET(_: Request, given: Given): Promise<Response> {
  const { id } = await given.params;
  const run = (await holdfast()).get(fulfil, id);
  const status = await run.status();
  if (status !== "completed") return Response.json({ status });
  return Response.json({ status, result: await run.result() });
}
