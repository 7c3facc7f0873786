/**
 * An object with some members replaced. All other members are called on the original, because
 * classes with private fields accept no other `this`.
 */
export function overlaid<T extends object, Own extends object>(original: T, own: Own): T & Own {
  return new Proxy(original, {
    get(target, name) {
      if (name in own) return Reflect.get(own, name, own);
      const found: unknown = Reflect.get(target, name, target);
      return typeof found === "function" ? (found.bind(target) as unknown) : found;
    },
    has: (target, name) => name in own || name in target,
  }) as T & Own;
}
