import { malformedId, type IdFault } from "./malformed-id.ts";
import { isJoinSetId, type JoinSetId } from "./join-set-id.ts";

/** The place of a child or a delay: its set, and its number there, counted from 1. */
export interface JoinSetMember {
  readonly joinSet: JoinSetId;
  readonly index: number;
}

const decimal = /^[1-9][0-9]{0,15}$/;

/** Returns `<join set>_<index>`, the part that derived ids append after a dot. */
export function memberText(joinSet: JoinSetId, index: number): string {
  if (!Number.isSafeInteger(index) || index < 1) {
    throw malformedId(`the index of a member of join set ${joinSet}`, String(index), "index");
  }
  return `${joinSet}_${index}`;
}

/** Returns the fault of a member's text, or undefined when it is valid. */
export function memberFault(text: string): IdFault | undefined {
  // Splits at the last underscore, so that it stays right if join set names may ever contain one.
  const split = text.lastIndexOf("_");
  if (split <= 0) return "segment";
  if (!isJoinSetId(text.slice(0, split))) return "joinSet";
  const index = text.slice(split + 1);
  if (!decimal.test(index) || !Number.isSafeInteger(Number(index))) {
    return "index";
  }
  return undefined;
}

/** Returns the parts of a text that `memberFault` accepted. */
export function splitMember(text: string): JoinSetMember {
  const split = text.lastIndexOf("_");
  return {
    joinSet: text.slice(0, split) as JoinSetId,
    index: Number(text.slice(split + 1)),
  };
}
