import { noProcesses, type SessionProcesses } from "../process/session-end-row.ts";

/** What was removed of a session. */
export interface RemovalReport {
  /** False when there never was such a session. */
  readonly existed: boolean;
  /** The generation that was deleted, now or before. */
  readonly generation: number | undefined;
  readonly rows: number;
  /** Blobs that nothing else referred to. */
  readonly blobs: number;
  readonly attachments: number;
  /** Nodes that forks still show; they go with the last such fork. */
  readonly sharedNodes: number;
  /**
   * Of `erase`: files of attachments that only this session had and that are
   * still there. They go with `removeForgotten` of the `attachments` that know the
   * folder.
   */
  readonly bytesPending: number;
  /**
   * What became of the background work that it could address. Nothing is
   * cancelled: that is for the host to decide. Deleting again tells the same
   * again, whereas what was removed is counted once.
   */
  readonly processes: SessionProcesses;
}

/** For a session that there never was. */
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
