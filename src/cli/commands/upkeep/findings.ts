import type { Damaged } from "../../../stores/damage.ts";
import type { ExecutionSummary } from "../../../stores/execution/read/summary.ts";
import type { DatabaseFacts } from "../../../open/database-facts.ts";
import { spokenDuration } from "../../../model/time/spoken.ts";
import { spokenBytes } from "../../text/spoken-bytes.ts";

/** A fact worth knowing, or a problem and how to fix it. */
export interface Finding {
  readonly level: "ok" | "note" | "problem";
  readonly about: string;
  readonly text: string;
  /** The remedy; every problem has one. */
  readonly fix?: string;
}

/** The observations of a doctor. */
export interface Symptoms {
  readonly facts: DatabaseFacts;
  readonly warnings: readonly string[];
  readonly parked: readonly ExecutionSummary[];
  readonly hasMoreParked: boolean;
  /** Unreadable rows that were met. */
  readonly damaged: readonly Damaged[];
  readonly unserved: readonly {
    readonly function: string;
    readonly id: string;
    readonly due_at: number;
  }[];
  /** The earliest delay, lock or deadline that no worker has processed yet. */
  readonly nextTimerAt: number | undefined;
  readonly clockOffsetMs: number;
  readonly now: number;
}

/** The log restarts at 16 MiB by default; beyond this size a reader holds it back. */
const logBytesSound = 64 * 1_048_576;
const freeBytesMin = 512 * 1_048_576;
const lateMs = 60_000;

/** File systems that end with the machine or the container. */
const fleeting: ReadonlyMap<string, Omit<Finding, "about">> = new Map([
  [
    "tmpfs",
    {
      level: "note",
      text: "the file is in memory (tmpfs), and is lost when the machine restarts",
      fix: "put it on a disk if you need to keep it",
    },
  ],
  [
    "overlay",
    {
      level: "note",
      text: "the file is in the layer of a container (overlay), and is lost with it",
      fix: "put it on a volume if you need to keep it",
    },
  ],
]);

/** All findings, problems with their fix. */
export function findingsOf(symptoms: Symptoms): readonly Finding[] {
  return [
    {
      level: "ok",
      about: "database",
      text: `${symptoms.facts.engine}, schema ${symptoms.facts.schema}`,
    },
    ...symptoms.warnings.map((text): Finding => ({
      level: "problem",
      about: "warning",
      text,
      fix: "follow the warning",
    })),
    ...moveFindings(symptoms),
    ...fileFindings(symptoms),
    processFinding(symptoms),
    ...parkedFindings(symptoms),
    ...damageFindings(symptoms),
    ...unservedFindings(symptoms),
    ...timeFindings(symptoms),
  ];
}

/** A file that looks sound but takes no writes. */
function moveFindings({ facts: { move } }: Symptoms): readonly Finding[] {
  if (move === undefined) return [];
  return [
    move === "moved"
      ? {
          level: "problem",
          about: "move",
          text: "it was moved to Postgres, and takes no writes",
          fix: "replace this path with the URL of that database",
        }
      : {
          level: "problem",
          about: "move",
          text: "it is being moved to Postgres, and takes no writes during the move",
          fix: "if the move was interrupted, run `npx holdfast migrate` again with the same target, or with --give-up",
        },
  ];
}

function fileFindings({ facts: { file } }: Symptoms): readonly Finding[] {
  if (file === undefined) return [];
  const { path, fileSystem, bytes, logBytes, freeBytes, logReaders } = file;
  const place = fileSystem === undefined ? "" : ` on ${fileSystem}`;
  const passing = fleeting.get(fileSystem ?? "");
  const size = `${spokenBytes(bytes)}, log ${spokenBytes(logBytes)}, ${spokenBytes(freeBytes)} free${place}`;
  const isFull = freeBytes < Math.max(freeBytesMin, logBytes);
  const heldBy =
    logReaders.length === 0
      ? ": a reader holds it back, or no process writes to it"
      : `, held back by process ${logReaders.join(", process ")}`;
  // Only Linux names the current readers.
  const named =
    logReaders.length === 0 ? `; lsof ${path}-shm names the processes that have it open` : "";
  return [
    { level: "ok", about: "file", text: size },
    ...(passing === undefined ? [] : [{ ...passing, about: "file" }]),
    ...(logBytes > logBytesSound
      ? [
          {
            level: "problem",
            about: "log",
            text: `the write-ahead log has grown to ${spokenBytes(logBytes)}${heldBy}`,
            fix: `end the reader (a database shell left open, a long backup${named}), or start a worker, which restarts the log`,
          } as const,
        ]
      : []),
    ...(isFull
      ? [
          {
            level: "problem",
            about: "disk",
            text: `only ${spokenBytes(freeBytes)} are free`,
            fix: "free some space; a full disk stops all writes",
          } as const,
        ]
      : []),
  ];
}

function processFinding({ facts, now }: Symptoms): Finding {
  const { processes } = facts;
  const open = processes.filter(({ liveness }) => liveness !== "dead");
  return {
    level: "ok",
    about: "processes",
    text:
      open.length === 0
        ? facts.file === undefined
          ? "unknown on Postgres; SELECT * FROM pg_stat_activity lists the connections"
          : "no process is known to have it open for writing"
        : open
            .map(
              ({ id, host, openedAt, liveness }) =>
                `${id} on ${host} for ${spokenDuration(now - openedAt)}${liveness === "unknown" ? " (may be gone)" : ""}`,
            )
            .join("; "),
  };
}

function parkedFindings({ parked, hasMoreParked }: Symptoms): readonly Finding[] {
  const codes = new Map<string, ExecutionSummary[]>();
  for (const run of parked) {
    const code = run.interruption?.kind === "parked" ? run.interruption.code : "unknown";
    codes.set(code, [...(codes.get(code) ?? []), run]);
  }
  return [...codes].map(([code, runs]) => {
    const [first] = runs;
    const count = `${runs.length}${hasMoreParked ? " or more" : ""}`;
    return {
      level: "problem",
      about: "parked",
      text: `${count} ${runs.length === 1 ? "run is" : "runs are"} parked with ${code}, such as ${first?.id} of ${first?.function}`,
      fix: `npx holdfast show ${first?.id}, fix the code, start a worker with it, then npx holdfast unpark ${first?.id}`,
    };
  });
}

function damageFindings({ damaged }: Symptoms): readonly Finding[] {
  return damaged.map(({ table, key }) => ({
    level: "problem",
    about: "damage",
    text: `row ${key} of ${table} is unreadable`,
    fix: "npx holdfast check gives details, and finds all unreadable rows",
  }));
}

function unservedFindings({ unserved, now }: Symptoms): readonly Finding[] {
  return unserved.map(({ function: name, id, due_at: dueAt }) => ({
    level: "problem",
    about: "unserved",
    text: `no worker serves ${name}: ${id} is overdue by ${spokenDuration(now - dueAt)}`,
    fix: `start a worker that serves ${name}: holdfast.work([…])`,
  }));
}

function timeFindings({ nextTimerAt, clockOffsetMs, now }: Symptoms): readonly Finding[] {
  const findings: Finding[] = [];
  if (nextTimerAt !== undefined && now - nextTimerAt > lateMs)
    findings.push({
      level: "problem",
      about: "timers",
      text: `a timer is overdue by ${spokenDuration(now - nextTimerAt)}, because no worker runs`,
      fix: "start a worker",
    });
  if (Math.abs(clockOffsetMs) > 1_000)
    findings.push({
      level: "problem",
      about: "clock",
      text: `this machine and the server differ by ${spokenDuration(Math.abs(clockOffsetMs))}`,
      fix: "synchronise their clocks",
    });
  return findings;
}
