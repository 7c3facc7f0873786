import { addedProcesses, noProcesses, type SessionProcesses } from "../process/session-end-row.ts";

/** The result of a removal. */
export interface RemovalReport {
  /** False when no such session ever existed. */
  readonly existed: boolean;
  /** The deleted generation, from this call or an earlier one. */
  readonly generation: number | undefined;
  readonly rows: number;
  /** Blobs that nothing else referred to. */
  readonly blobs: number;
  readonly attachments: number;
  /** Nodes that forks still show; they are removed with the last such fork. */
  readonly sharedNodes: number;
  /**
   * Only for `erase`: remaining files of attachments that only this session had. Call
   * `removeForgotten` of the `attachments` with that folder to remove them.
   */
  readonly bytesPending: number;
  /**
   * The background work that the session could address. Nothing is cancelled: the host decides
   * about that. A repeated deletion reports it again, whereas removed rows are counted once.
   */
  readonly processes: SessionProcesses;
}

/** The report for a session that never existed. */
export const nothingRemoved: RemovalReport = {
  existed: false,
  generation: undefined,
  rows: 0,
  blobs: 0,
  attachments: 0,
  sharedNodes: 0,
  bytesPending: 0,
  processes: noProcesses,
};

/** A report with the counts of another one. */
export function addedRemovals(report: RemovalReport, other: RemovalReport): RemovalReport {
  return {
    ...report,
    rows: report.rows + other.rows,
    blobs: report.blobs + other.blobs,
    attachments: report.attachments + other.attachments,
    sharedNodes: report.sharedNodes + other.sharedNodes,
    bytesPending: report.bytesPending + other.bytesPending,
    processes: addedProcesses(report.processes, other.processes),
  };
}
