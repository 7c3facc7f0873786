/**
 * What JSON cannot say is written as a tagged object:
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
 * The last one is the escape rule: every object with the marker as its own key
 * is a tag, and a user's object that has it is wrapped in one, so user data is
 * never taken for a tag. Tags are on users' disks: add some, change none.
 */
export const marker = "$holdfast";

export type Tag = "undefined" | "date" | "bigint" | "bytes" | "map" | "set" | "error" | "object";
