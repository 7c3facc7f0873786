import type { SessionId } from "../ids/session-id.ts";

/** A holder's reference to a session. A handle of a deleted generation is fenced. */
export interface SessionHandle {
  readonly id: SessionId;
  readonly generation: number;
}

/** The turns that an agent takes of a session. */
export interface SessionTurns {
  /** The name of the agent; null when the host commits turns by itself. */
  readonly agent: string | null;
  /** The number of the last turn. It never goes back. */
  readonly turns: number;
  /** The id of the run that takes the open turn. */
  readonly openTurn: string | null;
  /** True when the open turn was asked to stop. */
  readonly isStopping: boolean;
}

/** The origin of a session: independent, or caused by another session. */
export type SessionRelation =
  | { readonly kind: "root" }
  | {
      readonly kind: "child";
      readonly of: SessionId;
      readonly causedBy: string | null;
    };

/** The host's description of a session. */
export interface SessionMeta {
  readonly name: string;
  readonly model: string | null;
  readonly cwd: string | null;
  readonly relation: SessionRelation;
}

/** One entry of a conversation's graph. It never changes once appended. */
export interface SessionNode {
  readonly id: string;
  /**
   * Null for a root, and when the parent was removed. A hidden parent is named until `vacuum`
   * removes it.
   */
  readonly parent: string | null;
  readonly turn: string;
  readonly at: number;
  readonly kind: string;
  readonly role: string | null;
  readonly frame: string | null;
  readonly causedBy: string | null;
  readonly payload: unknown;
}

/** One agent's stretch of work within a session, with the state it needs to resume. */
export interface SessionFrame {
  readonly id: string;
  readonly reason: string;
  readonly data: unknown;
  /** The host's own state for the frame, which may contain bytes; null when there is none. */
  readonly state: unknown;
}

/** One part of the checkpoint, as of its last change. */
export interface SessionComponent {
  /** The host's own format number. */
  readonly version: number;
  /** The head's revision at its last change. */
  readonly revision: number;
  readonly value: unknown;
}

/** Tokens by kind. Tokens read from a cache are not part of the input count. */
export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
}

/** The usage of one model by one source. */
export interface UsageEntry extends TokenUsage {
  readonly source: string;
  readonly model: string;
}

/** The same as a caller passes it. An omitted kind counts as 0. */
export interface NewUsage extends Partial<TokenUsage> {
  readonly source: string;
  readonly model: string;
}

export const tokenKinds: readonly (keyof TokenUsage)[] = [
  "inputTokens",
  "outputTokens",
  "cacheReadTokens",
  "cacheWriteTokens",
  "reasoningTokens",
];
