/** Values that throw when they are looked at, or that nobody expects to be thrown. */
export const hostileThrows: readonly (readonly [string, () => unknown])[] = [
  ["a revoked proxy", revoked],
  ["a proxy whose traps throw", () => trapped({})],
  ["a proxy of an error whose traps throw", () => trapped(new Error("inner"))],
  ["a proxy whose traps throw a revoked proxy", () => trapped({}, revoked)],
  ["an error whose fields throw", () => withThrowingFields(new Error("inner"))],
  ["an object whose fields throw", () => withThrowingFields({})],
  ["an object without a prototype", () => Object.create(null) as unknown],
  ["a function", () => () => undefined],
  ["a symbol", () => Symbol("thrown")],
  ["undefined", () => undefined],
];

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function trapped(target: object, thrown: () => unknown = () => new Error("trap")): object {
  const trap = (): never => {
    throw thrown();
  };
  return new Proxy(target, {
    get: trap,
    has: trap,
    getPrototypeOf: trap,
    ownKeys: trap,
    getOwnPropertyDescriptor: trap,
  });
}

function withThrowingFields(target: object): object {
  for (const field of ["stack", "name", "message", "code", "cause"])
    Object.defineProperty(target, field, {
      get() {
        throw new Error(`no ${field}`);
      },
    });
  return target;
}
