import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { loadDriver } from "../../src/backends/postgres/driver.ts";
import { openPostgres } from "../../src/postgres.ts";
import type { PostgresOptions } from "../../src/postgres.ts";
import { row, sql, type Database } from "../../src/kernel.ts";
import { rejection } from "../conformance/backend.ts";
import { Barrier } from "./barrier.ts";
import { serverUrl, urlWith, withNewPlace } from "./place.ts";
import { questionsDuring } from "./round-trips.ts";
import { migrationNumbers, ownTableNames } from "../fixtures/schema.ts";

const password = "s3cret-Pa55word";

/** Everything a log could show of a value. */
function shown(value: unknown): string {
  return [
    String(value),
    inspect(value, { depth: 10, showHidden: true }),
    JSON.stringify(value),
    JSON.stringify(Object.getOwnPropertyDescriptors(value)),
  ].join("\n");
}

function setting(database: Database, name: string): Promise<unknown> {
  return database.read("setting", function* () {
    const found = yield* row<{ value: string }>(sql`SELECT current_setting(${name}) AS value`);
    return found?.value;
  });
}

describe("opening", () => {
  test("[A1] sixteen opens of an empty schema at once all succeed and make it once", () =>
    withNewPlace(async (place) => {
      const opened = await Promise.all(
        Array.from({ length: 16 }, () => place.open({ poolSize: 1 })),
      );
      expect(opened).toHaveLength(16);
      expect([...(await place.shell()`SELECT number::int FROM holdfast_migration`)]).toEqual(
        migrationNumbers,
      );
    }));

  test("our tables land in our schema", () =>
    withNewPlace(async (place) => {
      await place.open();
      const found = await place.shell()<{ tablename: string }[]>`
        SELECT tablename FROM pg_tables WHERE schemaname = ${place.schema} ORDER BY 1`;
      expect(found.map((table) => table.tablename)).toEqual(
        [...ownTableNames, "holdfast_migration"].toSorted(),
      );
    }));

  test.each([{ prepare: true }, { prepare: false }])(
    "an existing schema is opened with five questions at most, a new one with few (%o)",
    (options) =>
      withNewPlace(async (place) => {
        const opening = async (url: string): Promise<void> => {
          await place.open(options, url);
        };
        // Without a clock of its own, so the server's is measured too.
        const made = await questionsDuring(place.url, opening);
        expect(made).toBeLessThanOrEqual(17 + migrationNumbers.length);
        const found = await questionsDuring(place.url, opening);
        expect(found).toBeLessThanOrEqual(5);
      }),
  );

  test("a user who may not use the schema is told so, and nothing is made elsewhere", () =>
    withNewPlace(async (place) => {
      await (await place.open()).close();
      const role = `role_${place.schema}`;
      const shell = place.shell();
      await shell.unsafe(`CREATE ROLE "${role}" LOGIN PASSWORD '${password}'`);
      const url = urlWith((parsed) => {
        parsed.username = role;
        parsed.password = password;
      });
      const error = await rejection(place.open({}, url));
      await shell.unsafe(`DROP ROLE "${role}"`);
      expect(error).toMatchObject({
        code: "DATABASE_ACCESS_DENIED",
        details: { schema: place.schema },
      });
    }));
});

describe("a server that does not let us in", () => {
  const cases: readonly [string, string, string, () => Promise<string>][] = [
    [
      "a wrong password is access denied",
      "DATABASE_ACCESS_DENIED",
      "28P01",
      () => Promise.resolve(urlWith((url) => (url.password = password))),
    ],
    [
      "a missing database is not found",
      "DATABASE_NOT_FOUND",
      "3D000",
      () => Promise.resolve(urlWith((url) => (url.pathname = "/nowhere"))),
    ],
    [
      "a refused connection is unreachable",
      "DATABASE_UNREACHABLE",
      "ECONNREFUSED",
      async () => {
        const port = await unusedPort();
        return urlWith((url) => {
          url.port = String(port);
          url.password = password;
        });
      },
    ],
    [
      "an unknown host is unreachable",
      "DATABASE_UNREACHABLE",
      "E",
      () =>
        Promise.resolve(
          urlWith((url) => {
            url.hostname = "no-such-host.invalid";
            url.password = password;
          }),
        ),
    ],
  ];

  test.each(cases)("%s", async (_, code, reason, urlOf) => {
    const url = await urlOf();
    const error = await rejection(openPostgres(url));
    expect(error).toMatchObject({
      code,
      retryable: code === "DATABASE_UNREACHABLE",
    });
    expect(Object.values(error.details ?? {}).join()).toContain(reason);
    expect(shown(error)).not.toContain(new URL(url).password);
    expect(shown(error)).not.toContain(new URL(serverUrl()).password);
  });

  test.each([
    ["08P01", "DATABASE_UNREACHABLE", /pooler.*`ignore_startup_parameters`/],
    ["28P01", "DATABASE_ACCESS_DENIED", /user and password/],
    ["3D000", "DATABASE_NOT_FOUND", /no database/],
  ])("a pooler's refusal %s, which has one severity alone, is %s", async (sqlstate, code, says) => {
    const fields = ["SFATAL", `C${sqlstate}`, "Mno", ""];
    const body = Buffer.from(fields.map((field) => `${field}\0`).join(""));
    const head = Buffer.from("E\0\0\0\0");
    head.writeInt32BE(body.length + 4, 1);
    const server = createServer((socket) => socket.end(Buffer.concat([head, body]))).listen(0);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const error = await rejection(
      openPostgres(`postgres://user:${password}@127.0.0.1:${port}/app`),
    );
    server.close();
    expect(error).toMatchObject({ code, message: expect.stringMatching(says) });
    expect(Object.values(error.details ?? {})).toEqual([sqlstate]);
  });

  test("a server that hangs up during the greeting is unreachable", async () => {
    const server = createServer((socket) => socket.destroy()).listen(0);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const error = await rejection(
      openPostgres(`postgres://user:${password}@127.0.0.1:${port}/app`),
    );
    server.close();
    expect(error).toMatchObject({ code: "DATABASE_UNREACHABLE" });
    expect(shown(error)).not.toContain(password);
  });

  test("several hosts are tried in turn, and none of them is an error, not a wait", async () => {
    const port = await unusedPort();
    const { username, password: secret, host } = new URL(serverUrl());
    const hosts = `127.0.0.1:${port},127.0.0.1:${port}`;
    const error = await rejection(
      openPostgres(`postgres://${username}:${secret}@${hosts}/postgres`),
    );
    expect(error).toMatchObject({ code: "DATABASE_UNREACHABLE" });
    await withNewPlace(async (place) => {
      const database = await place.open(
        {},
        `postgres://${username}:${secret}@127.0.0.1:${port},${host}/postgres`,
      );
      expect(await setting(database, "server_encoding")).toBe("UTF8");
    });
  });

  test("several hosts of which none is what the URL asks for are an error too", async () => {
    const { username, password: secret, host } = new URL(serverUrl());
    const error = await rejection(
      openPostgres(
        `postgres://${username}:${secret}@${host},${host}/postgres?target_session_attrs=standby`,
      ),
    );
    expect(error).toMatchObject({ code: "DATABASE_UNREACHABLE" });
    expect(shown(error)).not.toContain(secret);
  });

  test("a password that stops working is told to those who wait", () =>
    withNewPlace(async (place) => {
      const role = `role_${place.schema}`;
      const shell = place.shell();
      await shell.unsafe(`CREATE ROLE "${role}" SUPERUSER LOGIN PASSWORD '${password}'`);
      const url = urlWith((parsed) => {
        parsed.username = role;
        parsed.password = password;
      }, place.url);
      const database = await place.open({}, url);
      await shell.unsafe(`ALTER ROLE "${role}" PASSWORD 'another'`);
      await shell`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${role}`;
      const error = await rejection(setting(database, "search_path"));
      expect(error).toMatchObject({ code: "DATABASE_ACCESS_DENIED" });
      expect(shown(error)).not.toContain(password);
      await database.close();
      await shell.unsafe(`DROP OWNED BY "${role}" CASCADE; DROP ROLE "${role}"`);
    }));

  test.each([
    ["no URL", undefined],
    ["a file name", "./app.db"],
    ["an unencoded password", `postgres://user:${password}/#@host:x/app`],
  ])("%s is refused without being quoted", async (_, url) => {
    const error = await rejection(openPostgres(url as string));
    expect(error).toMatchObject({
      code: "OPTION_INVALID",
      details: { option: "url" },
    });
    expect(shown(error)).not.toContain(password);
  });

  test("a missing driver names the package to install", async () => {
    const error = await rejection(
      loadDriver(() => Promise.reject(new Error("Cannot find package"))),
    );
    expect(error).toMatchObject({ code: "DRIVER_MISSING" });
    expect(error.message).toContain("npm install postgres");
  });

  test("nothing of an open database shows the password", () =>
    withNewPlace(async (place) => {
      const database = await place.open();
      const secret = new URL(serverUrl()).password;
      expect(secret).not.toBe("");
      expect(shown(database)).not.toContain(secret);
      expect(shown(database.stats())).not.toContain(secret);
      const failure = await rejection(
        database.read("typo", () => row(sql`SELECT nothing FROM nowhere`)),
      );
      expect(shown(failure)).not.toContain(secret);
    }));
});

describe("options", () => {
  test.each([
    ["schema", { schema: "Holdfast" }],
    ["schema", { schema: 'a"; DROP TABLE x; --' }],
    ["schema", { schema: "a".repeat(64) }],
    ["schema", { schema: "" }],
    ["poolSize", { poolSize: 0 }],
    ["poolSize", { poolSize: 1.5 }],
    ["durability", { durability: "memory" }],
    ["clock", { clock: 5 }],
    ["clock", { clock: { now: () => 5 } }],
    ["queueCallsMax", { queueCallsMax: -1 }],
    ["pollInterval", { pollInterval: "1ms" }],
    ["pollInterval", { pollInterval: 0 }],
    ["setFormLanes", { setFormLanes: "3" }],
    ["prepare", { prepare: "yes" }],
    ["notify", { notify: "never" }],
    ["onWarning", { onWarning: "log" }],
  ])("a bad %s is refused by name: %o", async (option, options) => {
    const error = await rejection(openPostgres(serverUrl(), options as unknown as PostgresOptions));
    expect(error).toMatchObject({
      code: "OPTION_INVALID",
      details: { option },
    });
    expect(error.message).toContain(option);
    expect(error.message).toContain("expected");
  });

  test("an unknown option is refused with those there are", async () => {
    const options = { poolsize: 3 } as unknown as PostgresOptions;
    const error = await rejection(openPostgres(serverUrl(), options));
    expect(error).toMatchObject({
      code: "OPTION_INVALID",
      details: { option: "poolsize" },
    });
    expect(error.message).toContain('Unknown option "poolsize"');
    expect(error.message).toContain("poolSize");
  });

  test("durability is the server's unless told, and never off under full", () =>
    withNewPlace(async (place) => {
      const off = urlWith((url) => {
        url.searchParams.set("options", "-c synchronous_commit=off");
      }, place.url);
      const full = await place.open({}, off);
      expect(full.durability).toBe("full");
      expect(await setting(full, "synchronous_commit")).toBe("on");
      const local = urlWith((url) => {
        url.searchParams.set("options", "-c synchronous_commit=local");
      }, place.url);
      const chosen = await place.open({}, local);
      expect(await setting(chosen, "synchronous_commit")).toBe("local");
      const normal = await place.open({ durability: "normal" });
      expect(normal.durability).toBe("normal");
      expect(await setting(normal, "synchronous_commit")).toBe("off");
    }));

  test("poolSize bounds the connections that calls use", () =>
    withNewPlace(async (place) => {
      const database = await place.open({ poolSize: 3 });
      const barrier = await Barrier.raise(place);
      const pids: number[] = [];
      const calls = Array.from({ length: 12 }, () =>
        database.read("held", function* () {
          const found = yield* row<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`);
          pids.push(found?.pid ?? 0);
          yield* barrier.stop();
        }),
      );
      await barrier.stopped(3);
      // Each has a connection, and the other nine have none.
      expect(new Set(pids).size).toBe(3);
      expect(pids).toHaveLength(3);
      expect(database.stats().queueDepth).toBe(9);
      await barrier.lift();
      await Promise.all(calls);
      expect(pids).toHaveLength(12);
      expect(new Set(pids).size).toBe(3);
    }));

  test("without prepare nothing is prepared and settings come with each transaction", () =>
    withNewPlace(async (place) => {
      const prepared = (database: Database): Promise<unknown> =>
        database.read("prepared", () =>
          row(sql`SELECT count(*) AS n FROM pg_prepared_statements WHERE ${1} = 1`),
        );
      const plain = await place.open({ prepare: false, poolSize: 1 });
      await prepared(plain);
      expect(await prepared(plain)).toEqual({ n: 0 });
      expect(await setting(plain, "lock_timeout")).toBe("2s");
      const usual = await place.open({ poolSize: 1 });
      await prepared(usual);
      expect(await prepared(usual)).not.toEqual({ n: 0 });
    }));
});

async function unusedPort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
