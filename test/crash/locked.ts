import type { Folder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

/** Runs a body while another process holds a lock on the folder's database; then that process is killed. */
export async function whileLocked(
  folder: Folder,
  kind: "read" | "write",
  body: () => Promise<void>,
): Promise<void> {
  const holder = new Child("lock-holder.ts", [folder.file(), kind]);
  await holder.reported(1);
  try {
    await body();
  } finally {
    holder.kill();
    await holder.ended;
  }
}
