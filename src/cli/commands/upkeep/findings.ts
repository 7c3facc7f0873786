import type { Damaged } from "../../../stores/damage.ts";
import type { ExecutionSummary } from "../../../stores/execution/read/summary.ts";
import type { DatabaseFacts } from "../../../open/database-facts.ts";
import { spokenDuration } from "../../../model/time/spoken.ts";
import { spokenBytes } from "../../text/spoken-bytes.ts";

/** Something that is to be known, or that is wrong and how to mend it. */
export interface Finding {
  readonly level: "ok" | "note" | "problem";
  readonly about: string;
  readonly text: string;
  /** What to do; of problems always. */
  readonly fix?: string;
}

/** What a doctor looks at. */
export interface Symptoms {
  readonly facts: DatabaseFacts;
  readonly warnings: readonly string[];
  readonly parked: readonly ExecutionSummary[];
  readonly hasMoreParked: boolean;
  /** Rows that were met on the way and cannot be read. */
  readonly damaged: readonly Damaged[];
  readonly unserved: readonly {
    readonly function: string;
    readonly id: string;
    readonly due_at: number;
  }[];
  /** The earliest delay, lock or deadline that waits to be noticed. */
  readonly nextTimerAt: number | undefined;
  readonly clockOffsetMs: number;
  readonly now: number;
}

/** Restarted at 16 MiB by default; beyond this somebody keeps it from that. */
const logBytesSound = 64 * 1_048_576;
const freeBytesMin = 512 * 1_048_576;
const lateMs = 60_000;

/** File systems that do not outlive the machine or the container. */
const fleeting: ReadonlyMap<string, Omit<Finding, "about">> = new Map([
  [
    "tmpfs",
    {
      level: "note",
      text: "the file is in memory (tmpfs), and gone when the machine restarts",
      fix: "put it on a disk, if it is to outlive that",
    },
  ],
  [
    "overlay",
    {
      level: "note",
      text: "the file is in the layer of a container (overlay), and gone with it",
      fix: "put it on a volume, if it is to outlive that",
    },
  ],
]);

/** Everything that is worth a line, problems with their fix. */
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
      fix: "do what it says",
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

/** A file that looks sound, and takes no writes. */
function moveFindings({ facts: { move } }: Symptoms): readonly Finding[] {
  if (move === undefined) return [];
  return [
    move === "moved"
      ? {
          level: "problem",
          about: "move",
          text: "it was moved to Postgres, and takes no more writes",
          fix: "give the URL of that database in place of this path",
        }
      : {
          level: "problem",
          about: "move",
          text: "it is being moved to Postgres, and takes no writes meanwhile",
          fix: "if the move was interrupted, run `holdfast migrate` again with the same target, or with --give-up",
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
      ? "a reader, or no process writes to it"
      : `process ${logReaders.join(", process ")}`;
  // Who reads at this moment is told by Linux alone.
  const named = logReaders.length === 0 ? `; lsof ${path}-shm names those that have it open` : "";
  return [
    { level: "ok", about: "file", text: size },
    ...(passing === undefined ? [] : [{ ...passing, about: "file" }]),
    ...(logBytes > logBytesSound
      ? [
          {
            level: "problem",
            about: "log",
            text: `the write-ahead log has grown to ${spokenBytes(logBytes)}: it is held back by ${heldBy}`,
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
          ? "who has it open is not known on Postgres; SELECT * FROM pg_stat_activity tells"
          : "none is known to have it open for writing"
        : open
            .map(
              ({ id, host, openedAt, liveness }) =>
                `${id} on ${host} since ${spokenDuration(now - openedAt)}${liveness === "unknown" ? " (may be gone)" : ""}`,
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
      fix: `holdfast show ${first?.id}, mend the code, start a worker with it, then holdfast unpark ${first?.id}`,
    };
  });
}

function damageFindings({ damaged }: Symptoms): readonly Finding[] {
  return damaged.map(({ table, key }) => ({
    level: "problem",
    about: "damage",
    text: `row ${key} of ${table} cannot be read`,
    fix: "holdfast check says more, and finds all that cannot be read",
  }));
}

function unservedFindings({ unserved, now }: Symptoms): readonly Finding[] {
  return unserved.map(({ function: name, id, due_at: dueAt }) => ({
    level: "problem",
    about: "unserved",
    text: `nobody runs ${name}: ${id} is due since ${spokenDuration(now - dueAt)}`,
    fix: `start a worker that is given ${name}: holdfast.work([…])`,
  }));
}

function timeFindings({ nextTimerAt, clockOffsetMs, now }: Symptoms): readonly Finding[] {
  const findings: Finding[] = [];
  if (nextTimerAt !== undefined && now - nextTimerAt > lateMs)
    findings.push({
      level: "problem",
      about: "timers",
      text: `something was due ${spokenDuration(now - nextTimerAt)} ago, and nobody lets time pass`,
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
