// The processes recorded by shim.test.ts, on plain better-sqlite3: no code of ours, so that the tool is tested alone.
//   node workload.mjs set-up
//   node workload.mjs write <writer> <calls> <seed> <flushed|unflushed>
//   node workload.mjs checkpoint <seed> <flushed|unflushed>     until standard input ends; also observes
// Marks: { "acknowledged": { <writer>: <last call> } }, { "observed": { <writer>: <last call>, … } },
// { "failed": { <writer>: <call> }, "code" } after a flush that failed.
import fs from "node:fs";
import Sqlite from "better-sqlite3";

const file = process.env.HOLDFAST_DATABASE;
const marks = fs.openSync(`${file}.marks`, "a");
const mark = (fact) => fs.writeSync(marks, JSON.stringify(fact));

function open() {
  const connection = new Sqlite(file, { timeout: 10_000 });
  connection.pragma("journal_mode = WAL");
  connection.pragma(`synchronous = ${process.env.WORKLOAD_SYNCHRONOUS ?? "NORMAL"}`);
  connection.pragma("wal_autocheckpoint = 0");
  connection.prepare("SELECT count(*) FROM sqlite_master").get(); // now the -wal exists
  const wal = fs.openSync(`${file}-wal`, "r+");
  return {
    connection,
    flush: () => fs.fdatasyncSync(wal),
    close() {
      fs.closeSync(wal);
      connection.close();
    },
  };
}

function random(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % limit;
  };
}

function setUp() {
  const { connection, flush, close } = open();
  connection.exec(`
    BEGIN IMMEDIATE;
    CREATE TABLE call (seq INTEGER PRIMARY KEY AUTOINCREMENT, writer TEXT NOT NULL, n INTEGER NOT NULL, UNIQUE (writer, n));
    CREATE TABLE payload (writer TEXT NOT NULL, n INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (writer, n)) WITHOUT ROWID;
    CREATE TABLE total (writer TEXT PRIMARY KEY, calls INTEGER NOT NULL);
    INSERT INTO total VALUES ('a', 0), ('b', 0);
    COMMIT`);
  flush();
  mark({ acknowledged: { a: 0, b: 0 } });
  close();
}

/** Each call is two rows and a count in one transaction; the next number continues after a restart. */
function write(writer, calls, seed, flushed) {
  const choose = random(seed);
  let { connection, flush, close } = open();
  for (let i = 0; i < calls; i++) {
    if (choose(50) === 0 && process.env.WORKLOAD_REOPENS !== "never") {
      close();
      ({ connection, flush, close } = open());
    }
    connection.exec("BEGIN IMMEDIATE");
    const n = connection
      .prepare("SELECT calls + 1 FROM total WHERE writer = ?")
      .pluck()
      .get(writer);
    const bytes = Buffer.alloc(choose(3_000), n % 251);
    connection.prepare("INSERT INTO call (writer, n) VALUES (?, ?)").run(writer, n);
    connection.prepare("INSERT INTO payload VALUES (?, ?, ?)").run(writer, n, bytes);
    connection.prepare("UPDATE total SET calls = calls + 1 WHERE writer = ?").run(writer);
    connection.exec("COMMIT");
    try {
      if (flushed) flush();
    } catch (error) {
      mark({ failed: { [writer]: n }, code: error.code });
      continue; // Wrong: see the test about failed flushes. Nothing it promises from here on is safe.
    }
    mark({ acknowledged: { [writer]: n } });
  }
  close();
}

async function checkpoint(seed, flushed) {
  const choose = random(seed);
  const { connection, flush, close } = open();
  connection.pragma("busy_timeout = 20");
  let ended = false;
  process.stdin.resume().on("end", () => (ended = true));
  while (!ended) {
    const rows = connection.prepare("SELECT writer, calls FROM total").all();
    if (flushed) flush();
    mark({
      observed: Object.fromEntries(rows.map((row) => [row.writer, row.calls])),
    });
    try {
      connection.pragma(`wal_checkpoint(${["PASSIVE", "FULL", "RESTART", "TRUNCATE"][choose(4)]})`);
    } catch (error) {
      if (!String(error.code).startsWith("SQLITE_BUSY")) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, choose(8)));
  }
  close();
}

const [role, ...args] = process.argv.slice(2);
if (role === "set-up") setUp();
else if (role === "write") write(args[0], Number(args[1]), Number(args[2]), args[3] === "flushed");
else if (role === "checkpoint") await checkpoint(Number(args[0]), args[1] === "flushed");
else throw new Error(`Unknown role "${role}".`);
