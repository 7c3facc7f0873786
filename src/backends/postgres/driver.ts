import type postgres from "postgres";
import { HoldfastError } from "../../model/errors.ts";
import { driverTypes } from "./values.ts";

export type Driver = typeof postgres;
export type DriverSession = postgres.Sql;

/**
 * Loads `postgres`, an optional peer, when it is first needed. If it is missing, the error has a
 * hint.
 */
export async function loadDriver(
  load: () => Promise<{ readonly default: Driver }> = () => import("postgres"),
): Promise<Driver> {
  try {
    return (await load()).default;
  } catch (error) {
    throw new HoldfastError(
      "DRIVER_MISSING",
      "The package `postgres` is not installed here. Run `npm install postgres`.",
      { package: "postgres" },
      { cause: error },
    );
  }
}

export interface SessionOptions {
  readonly prepare: boolean;
  readonly socket: unknown;
  readonly onclose: () => void;
  readonly onnotify: (channel: string, payload: string) => void;
}

/**
 * Starts one session of the driver. The driver also pools, reconnects and listens. We use none of
 * that, because a reconnected session is outside the transaction its next statement was meant for.
 * A lost session is discarded as a whole.
 */
export function startSession(driver: Driver, url: string, options: SessionOptions): DriverSession {
  const chosen = {
    ...options,
    max: 1,
    // Types are ours (values.ts), so there is nothing to ask the server.
    types: driverTypes,
    fetch_types: false,
    // A session is closed only by us or by the server, never by a timer.
    idle_timeout: null,
    max_lifetime: null,
    connect_timeout: 10,
    // In seconds. Detects an idle connection whose other end is gone, and keeps balancers from
    // dropping it.
    keep_alive: 10,
    connection: { application_name: "holdfast" },
    onnotice: () => undefined,
    debug: false,
  };
  try {
    return driver(url, chosen as unknown as postgres.Options<never>);
  } catch {
    // The driver's error quotes the URL, password included.
    throw urlInvalid();
  }
}

export function checkUrl(url: unknown): asserts url is string {
  if (typeof url !== "string" || !/^postgres(ql)?:\/\//.test(url)) throw urlInvalid();
}

function urlInvalid(): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    "The URL is not a Postgres URL; expected postgres://user:password@host:port/database, with special characters percent-encoded. (It is not shown here because it may hold a password.)",
    { option: "url" },
  );
}
