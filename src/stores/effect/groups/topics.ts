/** What waiters listen for: members of the group whose row has this key were given their places. */
export const groupChanged = "effect-group.changed";
