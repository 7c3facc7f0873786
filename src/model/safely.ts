/**
 * Returns the answer to a question about a thrown value, or `otherwise` if the value throws when it
 * is inspected. `in`, `instanceof` and reading a field run the code of a proxy or a getter, which
 * may throw. Inspecting a thrown value must not fail, or code other than the thrower would suffer.
 */
export function safely<T>(ask: () => T, otherwise: T): T {
  try {
    return ask();
  } catch {
    return otherwise;
  }
}
