/**
 * The answer to a question about a value that somebody threw, or `otherwise`
 * when it does not let itself be looked at: `in`, `instanceof` and reading a
 * field all run code of a proxy or a getter, which may throw. Who looks at what
 * was thrown must not fail by it, or others than the thrower are hurt.
 */
export function safely<T>(ask: () => T, otherwise: T): T {
  try {
    return ask();
  } catch {
    return otherwise;
  }
}
