import { until, type Place } from "./place.ts";

/** As a machine that loses a process would: the server ends all sessions and recovers from its log. */
export async function crashServer(place: Place): Promise<void> {
  const shell = place.shell();
  const sessions = async (): Promise<readonly number[]> => {
    const found = await shell<{ pid: number }[]>`
      SELECT pid FROM pg_stat_activity WHERE application_name = ${place.app}`;
    return found.map(({ pid }) => pid);
  };
  const before = await sessions();
  const [own] = await shell<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
  process.kill(own?.pid ?? 0, "SIGKILL");
  await until(() =>
    sessions().then(
      (pids) => !pids.some((pid) => before.includes(pid)),
      () => false,
    ),
  );
}
