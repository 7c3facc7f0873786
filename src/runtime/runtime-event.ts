/**
 * What the runtime tells of what it does, for logs. `message` is for people;
 * `details` has ids and names, never a user's values.
 */
export interface RuntimeEvent {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}
