import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { openPostgres } from "../../src/postgres.ts";
import type { PostgresOptions } from "../../src/postgres.ts";
import type { Database } from "../../src/kernel.ts";
import { appSchemaOf, giveBack, makeAppSchema, sharedSpares, takeSpare } from "./spare-schemas.ts";

/** Another client of the same server, as an app or an operator would have it. */
export type Shell = postgres.Sql;

/** The server of this run; the global setup has started it. */
export function serverUrl(): string {
  const url = process.env["HOLDFAST_TEST_POSTGRES_URL"];
  if (url === undefined) throw new Error("No Postgres server was started.");
  return url;
}

/** The same server with something else in the URL. */
export function urlWith(change: (url: URL) => void, of = serverUrl()): string {
  const url = new URL(of);
  change(url);
  return url.href;
}

/** A schema of its own in a server, with everything that was opened on it. At first there is nothing in it. */
export class Place {
  readonly schema: string = `test_${randomBytes(6).toString("hex")}`;
  /** Names our sessions, so that a test can find and end its own. */
  readonly app: string = `app_${randomBytes(6).toString("hex")}`;
  /** Where tables of the test's own land. */
  readonly appSchema: string = appSchemaOf(this.schema);
  readonly url: string;
  readonly #isOnOwnServer: boolean;
  /** What the names of schemas that are used again begin with. */
  readonly #spares: string | undefined;
  readonly #opened = new Set<Database>();
  readonly #shells = new Set<Shell>();
  #appSchemaMade: Promise<void> | undefined;

  /** One on the server of this run, in which our tables may be already. */
  static async prepared(spares = sharedSpares): Promise<Place> {
    const place = new Place(serverUrl(), spares);
    await takeSpare(place.schema, spares);
    return place;
  }

  constructor(url: string = serverUrl(), spares = sharedSpares) {
    this.#isOnOwnServer = url !== serverUrl();
    this.#spares = spares;
    this.url = urlWith((parsed) => {
      parsed.searchParams.set("application_name", this.app);
      parsed.searchParams.set("search_path", this.appSchema);
    }, url);
  }

  async open(options: PostgresOptions = {}, url: string = this.url): Promise<Database> {
    await (this.#appSchemaMade ??= makeAppSchema(
      this.schema,
      this.#isOnOwnServer ? this.url : undefined,
    ));
    const database = await openPostgres(url, {
      schema: this.schema,
      // Fewer than usual: several test files share the server's connections.
      poolSize: 4,
      ...options,
    });
    this.#opened.add(database);
    return database;
  }

  /** A session beside ours, with our schema first on its path, then that of the app. */
  shell(url: string = this.url): Shell {
    const path = `${this.schema}, ${this.appSchema}`;
    const shell = postgres(
      urlWith((parsed) => parsed.searchParams.set("search_path", path), url),
      { max: 1, onnotice: () => undefined },
    );
    this.#shells.add(shell);
    return shell;
  }

  /** Closes the databases. */
  async close(): Promise<void> {
    await Promise.all([...this.#opened].map((database) => database.close()));
  }

  async dispose(): Promise<void> {
    await this.close();
    await Promise.all([...this.#shells].map((shell) => shell.end({ timeout: 1 })));
    // A server of its own goes with all that is in it.
    if (!this.#isOnOwnServer) await giveBack(this.schema, this.#spares);
  }
}

/** Runs a test body with a place that has nothing but our tables in it. */
export async function withPlace(body: (place: Place) => Promise<void>): Promise<void> {
  await within(await Place.prepared(), body);
}

/** The same for tests of opening and of plans: nobody has been there before. */
export async function withNewPlace(body: (place: Place) => Promise<void>): Promise<void> {
  await within(new Place(), body);
}

async function within(place: Place, body: (place: Place) => Promise<void>): Promise<void> {
  try {
    await body(place);
  } finally {
    await place.dispose();
  }
}

/** Waits for something that happens by itself; the test's timeout is the limit. */
export async function until(happened: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await happened())) await new Promise((resolve) => setTimeout(resolve, 5));
}
