// Plain JavaScript, embedded as a text by `npm run threads`.
import { parentPort, workerData } from "node:worker_threads";
import {
  failureOf,
  flushLog,
  openReadOnly,
  problemsOf,
  quoted,
  tableNames,
} from "./heavy-connection.js";
import { planOf, readPage } from "./heavy-page.js";
import { measure, storedObjects } from "./heavy-sizes.js";

/** The newest snapshot known to be durable, by this connection's `data_version`. */
let durableVersion;

/**
 * The jobs of the thread. Each is one short snapshot, because a long one keeps the log from being
 * restarted.
 */
const jobs = {
  tables: tableNames,
  check: (connection, { table }) => problemsOf(connection, `quick_check(${quoted(table)})`),
  page,
  objects: storedObjects,
  size: (connection, { object, dbstat }) =>
    measure(connection, object, dbstat && hasDbstat(connection)),
};

/** Reads a page and returns it only once it is durable, as with every read. */
function page(connection, request) {
  connection.exec("BEGIN");
  let found;
  let version;
  try {
    const plan = planOf(connection, request.table);
    if (plan === undefined) return { kind: "unknown", tables: tableNames(connection) };
    if (request.after !== undefined && request.after.length !== plan.keys.length)
      return { kind: "mismatch", keys: plan.keys.map(({ as }) => as) };
    found = readPage(connection, plan, request, () => performance.now());
    version = connection.prepare("PRAGMA data_version").get().data_version;
  } finally {
    connection.exec("ROLLBACK");
  }
  if (version !== durableVersion) flushLog(workerData.path);
  durableVersion = version;
  return { kind: "page", ...found };
}

function hasDbstat(connection) {
  try {
    connection.prepare("SELECT name FROM dbstat");
    return true;
  } catch {
    return false;
  }
}

function serve() {
  let connection;
  parentPort.on("message", ({ job, request }) => {
    if (job === "close") {
      connection?.close();
      parentPort.close();
      return;
    }
    let reply;
    try {
      connection ??= openReadOnly(workerData);
      reply = { value: jobs[job](connection, request) };
    } catch (error) {
      reply = { failure: failureOf(error) };
    }
    parentPort.postMessage(reply);
  });
}

serve();
