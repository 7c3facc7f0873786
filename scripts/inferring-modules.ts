import { openSqlite } from "../src/sqlite.ts";

/** The pages of each door. */
const pagesOf: Readonly<Record<string, readonly string[]>> = {
  executions: ["executions"],
  sessions: ["sessions", "queue", "leases", "attachments"],
  processes: ["processes"],
  effects: ["effects", "awaitEvents", "processEffects"],
  triggers: ["triggers", "schedules"],
  blobs: ["blobs", "artifacts", "maintenance"],
};

/**
 * Modules of a user who exports answers and writes none of their types down,
 * by name: one for each door, which imports nothing else, since TypeScript
 * names a type by doors that the program has loaded.
 */
export async function inferringModules(): Promise<ReadonlyMap<string, string>> {
  const modules = new Map(Object.entries(byHand));
  const database = await openSqlite(":memory:");
  try {
    for (const [door, pages] of Object.entries(pagesOf)) {
      const made = (await import(`../src/${door}.ts`)) as Makers;
      const texts = pages.map((page) => ofPage(door, page, made[page]?.(database) ?? {}));
      modules.set(door, texts.join("\n"));
    }
  } finally {
    await database.close();
  }
  return modules;
}

type Makers = Readonly<Record<string, (database: object) => object>>;

/** A page, and what each of its methods answers. */
function ofPage(door: string, name: string, page: object): string {
  const members = Object.entries(page).map(([member, value]) => {
    const place = `${name}Page.${member}`;
    const answer =
      typeof value === "function"
        ? `async () => ${place}(...(undefined as never as Parameters<typeof ${place}>))`
        : place;
    return `export const ${name}_${member} = ${answer};`;
  });
  return [
    `import { ${name} } from "holdfast/${door}";`,
    `export const ${name}Page = ${name}(undefined as never);`,
    ...members,
  ].join("\n");
}

/** The other doors, and what is often taken out of an answer. */
const byHand: Readonly<Record<string, string>> = {
  index: `
    import { HoldfastError, isHoldfastError } from "holdfast";
    export const lost = new HoldfastError("LEASE_LOST", "Lost.", {});
    export const { code, details } = lost;
    export const isOurs = isHoldfastError;`,
  kernel: `
    import { done, idSource, integersOf, lockRow, operation, rollbackWith, row, rows, run, sql, textsOf, type Database } from "holdfast/kernel";
    declare const database: Database;
    export const deposit = operation("deposit", {
      key: (input: { id: string; cents: number }) => input.id,
      *one({ id, cents }) {
        yield* run(sql\`UPDATE account SET cents = cents + \${cents} WHERE id = \${id}\`);
        return yield* row<{ cents: number }>(sql\`SELECT cents FROM account WHERE id = \${id}\`);
      },
    });
    export function* open(id: string) {
      yield* run(sql\`INSERT INTO account (id) VALUES (\${id})\`);
      return yield* deposit({ id, cents: 1 });
    }
    export const tried = function* () { return yield* rollbackWith(1); };
    export const all = () => rows<{ id: string }>(sql\`SELECT id FROM account \${lockRow}\`);
    export const verdicts = [done(1), undefined];
    export const some = sql\`\${integersOf([1])} \${textsOf(["a"])}\`;
    export const ids = idSource(database);
    export const executor = ids.nextId("Exr");
    export const round = ids.nextId("Run");
    export const deployment = ids.nextId("Dep");
    export const { owner, clock, entropy, dialect, durability } = database;
    export const answer = await database.write(deposit, { id: "a", cents: 1 });
    export const found = await database.read("all", all);
    export const report = await database.setUp("app", []);
    export const liveness = await database.liveness(owner);
    export const stats = database.stats();
    export const stop = database.subscribe(() => undefined);`,
  sqlite: `
    import { attachmentFiles, exportSession, importSession, openSqlite, sessionFiles } from "holdfast/sqlite";
    export const database = await openSqlite("app.db");
    export const checked = await database.check();
    export const copied = await database.backup("copy.db");
    export const rows = database.exportRows("account");
    export const sizes = await database.sizes();
    export const { dialect, durability, owner } = database;
    export const files = sessionFiles("sessions");
    export const file = await files.create("chat-7");
    export const { session, sessions } = file;
    export const exported = await exportSession(database, "chat-7", "there");
    export const imported = await importSession(database, "there");
    export const bytes = attachmentFiles("bytes");`,
  postgres: `
    import { attachmentFiles, openPostgres } from "holdfast/postgres";
    export const database = await openPostgres("postgres://…");
    export const { dialect, durability, owner } = database;
    export const bytes = attachmentFiles("bytes");`,
  testing: `
    import { manualClock, seededEntropy } from "holdfast/testing";
    export const clock = manualClock(0);
    export const entropy = seededEntropy(7);`,
  parts: `
    import { childId, delayId, executions, namedJoinSet, parseExecutionId, parseFunctionName } from "holdfast/executions";
    import { leases, queue, sessions } from "holdfast/sessions";
    import { processes } from "holdfast/processes";
    import { effects } from "holdfast/effects";
    import { triggers } from "holdfast/triggers";
    const none = undefined as never;
    const log = executions(none);
    export const { id, function: name, role, state } = await log.get("order-42");
    export const { pending, lifecycle, retry } = state;
    export const child = childId(id, namedJoinSet("pay"), 1);
    export const delay = delayId(id, namedJoinSet("nap"), 1);
    export const parsed = [parseExecutionId("order-42"), parseFunctionName("orders/fulfil")];
    export const { locked: [first] } = await log.lockPending(none);
    export const { history, responses, created, holder } = first!;
    export const { event } = history[0]!;
    export const { response } = responses[0]!;
    export const { items: runs, next, damaged } = await log.list();
    export const { head, path, components } = await sessions(none).load("chat-7");
    export const node = path.nodes[0];
    export const component = components["memory"];
    export const outcome = await leases(none).acquire("chat-7", none);
    export const lease = outcome.kind === "acquired" ? outcome.lease : undefined;
    export const rival = outcome.kind === "busy" ? outcome.holder : undefined;
    export const { ref, batches } = (await queue(none).claimTurn(lease!))!;
    export const item = batches[0]?.items[0];
    export const { event: appended, status } = await processes(none).append("p", none);
    export const claimed = await effects(none).claim(none, "key", none);
    export const claim = claimed.kind === "claimed" ? claimed.claim : undefined;
    export const busy = claimed.kind === "busy" ? claimed.holder : undefined;
    export const { occurrence, deliveries } = await triggers(none).record(none);`,
};
