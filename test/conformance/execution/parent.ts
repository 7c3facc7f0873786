import { childRequested, joinSetCreated } from "./execution-events.ts";
import type { ExecutionFixture } from "./fixture.ts";

/** How the children end. */
export const result = { kind: "completed", value: "of child" } as const;

/** Parent "p", never locked, with so many children in each set; its next version. */
export async function parentOf(
  { store }: ExecutionFixture,
  children: readonly string[],
): Promise<number> {
  await store.create({ id: "p", function: "parent" });
  const { nextVersion } = await store.append(
    "p",
    1,
    [joinSetCreated("n:x"), ...children.map((id) => childRequested(id.slice(2, 5), id, "f"))],
    { children: children.map((id) => ({ id, function: "f" })) },
  );
  return nextVersion;
}
