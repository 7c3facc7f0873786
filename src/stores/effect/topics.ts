/** What waiters listen for: the effect whose row has that key was settled, or nobody is at it any more. */
export const effectChanged = "effect.changed";
