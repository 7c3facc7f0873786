import { systemClock } from "../../src/host/clock.ts";
import { systemEntropy } from "../../src/host/entropy.ts";
import { idSource } from "../../src/kernel.ts";
import { Peers } from "../../src/backends/sqlite/neighbours/peers.ts";

/**
 * A peer that asks the others for something and is stopped right after, as a
 * process may be in a debugger or a container that is paused.
 */
const [path = "", moment = ""] = process.argv.slice(2);
const owners = idSource({ clock: systemClock, entropy: systemEntropy });
const peers = new Peers(
  path,
  owners.nextId("Own"),
  {
    onRing: () => undefined,
    onFree: () => false,
    onHold: () => () => undefined,
    onGone: () => undefined,
  },
  undefined,
);
await peers.start();
if (moment === "hold") peers.hold(true);
else peers.wait();
process.stdout.write("said\n");
process.kill(process.pid, "SIGSTOP");
// Only when it may go on.
await peers.close({ sayBye: true });
