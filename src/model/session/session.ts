import type { SessionId } from "../ids/session-id.ts";

/** A session as its holder knows it. A handle of a deleted generation is fenced. */
export interface SessionHandle {
  readonly id: SessionId;
  readonly generation: number;
}

/** Where a session comes from: it stands alone, or another one caused it. */
export type SessionRelation =
  | { readonly kind: "root" }
  | {
      readonly kind: "child";
      readonly of: SessionId;
      readonly causedBy: string | null;
    };

/** What a host says about a session. */
export interface SessionMeta {
  readonly name: string;
  readonly model: string | null;
  readonly cwd: string | null;
  readonly relation: SessionRelation;
}

/** One entry of a conversation's graph. Never changed once appended. */
export interface SessionNode {
  readonly id: string;
  /** Null for a root, and where the parent is gone. One that is only hidden is named until `vacuum` removes it. */
  readonly parent: string | null;
  readonly turn: string;
  readonly at: number;
  readonly kind: string;
  readonly role: string | null;
  readonly frame: string | null;
  readonly causedBy: string | null;
  readonly payload: unknown;
}

/** One agent's stretch of work within a session, with what it needs to go on. */
export interface SessionFrame {
  readonly id: string;
  readonly reason: string;
  readonly data: unknown;
  /** Anything the host keeps for the frame, bytes included; null when there is none. */
  readonly state: unknown;
}

/** One part of the checkpoint, as it was when it last changed. */
export interface SessionComponent {
  /** The host's own format number. */
  readonly version: number;
  /** The head's revision at which it last changed. */
  readonly revision: number;
  readonly value: unknown;
}

/** Tokens by kind. What is read from a cache is not part of the input count. */
export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
}

/** What one source used of one model. */
export interface UsageEntry extends TokenUsage {
  readonly source: string;
  readonly model: string;
}

/** The same as it is given: a kind that is left out counts 0. */
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
