import {
  delayId,
  type Holder,
  type GivenEvent,
  childId,
  parseExecutionId,
  type FunctionName,
  namedJoinSet,
  executions,
} from "../../src/executions.ts";
import { idSource } from "../../src/kernel.ts";
import { openSqlite } from "../../src/sqlite.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A process that lives many lives of executions at once and reports what was
 * acknowledged on its standard output, one fact per line: an event by its
 * execution, version and kind, or a response by its execution and source.
 */
const [path = "", prefix = "", callers = "1"] = process.argv.slice(2);

const database = await openSqlite(path, {
  driver: driverName,
  limits: { walBytes: 262_144 },
});
const { clock, entropy } = database;
const store = executions(database);
const ids = idSource({ clock, entropy });
const joinSet = namedJoinSet("kids");
process.stdout.write("open\n");

function event(id: string, version: number, kind: string): void {
  process.stdout.write(`event ${id} ${version} ${kind}\n`);
}

function response(id: string, source: string): void {
  process.stdout.write(`response ${id} ${source}\n`);
}

/** Appends, and reports each event once all are acknowledged. */
async function append(
  id: string,
  version: number,
  events: readonly GivenEvent[],
  options: Parameters<typeof store.append>[3],
): Promise<number> {
  const { nextVersion } = await store.append(id, version, events, options);
  for (const [index, { kind }] of events.entries()) event(id, version + index, kind);
  return nextVersion;
}

async function lock(
  id: string,
  version: number,
  holder: Pick<Holder, "executor" | "run">,
): Promise<number> {
  await store.lock(id, version, { holder, lease: "1h" });
  event(id, version, "locked");
  return version + 1;
}

/** A parent with three children, a delay and a signal, from its creation to its end. */
async function live(text: string): Promise<void> {
  const id = parseExecutionId(text);
  const holder = { executor: ids.nextId("Exr"), run: ids.nextId("Run") };
  const fence = { fence: holder };
  const kids = [1, 2, 3].map((index) => childId(id, joinSet, index));
  const [first = id, second = id, third = id] = kids;
  const delay = delayId(id, joinSet, 1);
  await store.create({ id, function: "crash/parent", input: { text } });
  event(id, 0, "created");
  let version = await lock(id, 1, holder);
  const requested = kids.map((child) => ({
    kind: "childRequested" as const,
    call: 1,
    seen: 0,
    joinSet,
    child,
    function: "crash/child" as FunctionName,
  }));
  const delayed: GivenEvent = {
    kind: "delayRequested",
    call: 2,
    seen: 0,
    joinSet,
    delay,
    expiresAt: clock.now() + 3_600_000,
    startAt: { in: "1h" },
  };
  version = await append(id, version, [...requested, delayed], {
    ...fence,
    children: kids.map((child, index) => ({
      id: child,
      function: "crash/child",
      role: index === 2 ? "external" : "activity",
      input: "x".repeat(500),
    })),
  });
  // Refused half-way on purpose: the delay exists, and what came before it must go too.
  await append(id, version, [{ ...asked, isClosing: true }, delayed], {
    children: [{ id: childId(id, joinSet, 4), function: "crash/child" }],
  }).catch(() => undefined);
  const signalled = store.signal(id, "go", 1, { key: "once" });
  await signalled.then(() => response(id, "s:go once"));
  await store.receive(id, "go", version, fence);
  event(id, version, "signalReceived");
  version = await append(id, version + 1, [asked, asked], fence);
  await Promise.all([
    lock(first, 1, holder)
      .then((next) => store.finish(first, next, { kind: "completed", value: 1 }))
      .then(() => ended(id, first, 2)),
    store.cancelActivity(second).then(() => ended(id, second, 1)),
    store.resolve(third, { kind: "completed", value: 3 }).then(() => ended(id, third, 1)),
    store.cancelDelay(delay).then(() => response(id, delay)),
  ]);
  version = await append(id, version, [asked, asked], fence);
  await store.finish(id, version, { kind: "completed", value: null }, fence);
  event(id, version, "finished");
}

const asked: GivenEvent & { readonly kind: "joinNext" } = {
  kind: "joinNext",
  call: 3,
  seen: 0,
  joinSet,
  runExpiresAt: 0,
  function: null,
  isClosing: false,
};

function ended(parent: string, child: string, version: number): void {
  event(child, version, "finished");
  response(parent, child);
}

async function caller(number: number): Promise<void> {
  for (let life = 0; ; life += 1) await live(`${prefix}-${number}-${life}`);
}

await Promise.all(Array.from({ length: Number(callers) }, (_, number) => caller(number)));
