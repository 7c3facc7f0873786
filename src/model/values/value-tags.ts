/**
 * The marker of a tagged object, which holds a value that JSON cannot express:
 *
 *     {"$holdfast":"date","value":"2026-01-02T03:04:05.678Z"}
 *
 * | tag       | value                                          |
 * | --------- | ---------------------------------------------- |
 * | undefined | none                                           |
 * | date      | ISO 8601, as Date.toISOString writes it        |
 * | bigint    | decimal digits                                 |
 * | bytes     | base64                                         |
 * | map       | array of [key, value], in insertion order      |
 * | set       | array of items, in insertion order             |
 * | error     | a StoredError                                  |
 * | object    | a user's object that has the marker as a key   |
 *
 * The last one is the escape rule. Every object with the marker as its own key is a tag. A user's
 * object with that key is wrapped in one, so user data is never taken for a tag. Tags are on users'
 * disks: new ones may be added, but none may change.
 */
export const marker = "$holdfast";

export type Tag = "undefined" | "date" | "bigint" | "bytes" | "map" | "set" | "error" | "object";
