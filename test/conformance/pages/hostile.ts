/** Thrown by values of our own when they are looked at: it is the caller's, and may reach the caller. */
export class Trap extends Error {
  override readonly name = "Trap";
}

function trap(): never {
  throw new Trap("Looked at.");
}

const looksMax = 1_000;

/** Counts how often values of our own are looked at; one that is walked beyond all bounds throws, which ends the walk. */
export const looks = { most: 0, walked: 0 };

function counted<T extends object>(target: T, length?: number): T {
  let count = 0;
  const look = (): void => {
    count += 1;
    looks.most = Math.max(looks.most, count);
    if (count > looksMax) {
      looks.walked += 1;
      throw new Trap("Looked at too often.");
    }
  };
  return new Proxy(target, {
    get(list, name) {
      look();
      if (length === undefined) return Reflect.get(list, name) as unknown;
      if (name === "length") return length;
      return typeof name === "string" && /^\d+$/.test(name)
        ? 0
        : (Reflect.get(list, name) as unknown);
    },
    has(list, name) {
      look();
      return Reflect.has(list, name);
    },
    getOwnPropertyDescriptor(list, name) {
      look();
      return Reflect.getOwnPropertyDescriptor(list, name);
    },
  });
}

const listMax = 2 ** 32 - 1;
/** Larger than any value may be, and made once. */
const hugeText = "x".repeat(2 ** 22);

/** What JavaScript lets through in place of anything; made anew for each call. */
export const hostileValues: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  true: () => true,
  NaN: () => Number.NaN,
  "-1": () => -1,
  "1.5": () => 1.5,
  "2 ** 53": () => 2 ** 53,
  "1n": () => 1n,
  '""': () => "",
  '"\\0"': () => "\0",
  '"\\ud800"': () => "\ud800",
  "a long text": () => "x".repeat(10_000),
  "{}": () => ({}),
  "[]": () => [],
  "[undefined]": () => [undefined],
  "a function": () => () => 1,
  "a symbol": () => Symbol("hostile"),
  "no date": () => new Date(Number.NaN),
  "a promise": () => Promise.resolve({}),
  "an object with a getter that throws": () => ({
    get id(): string {
      return trap();
    },
  }),
  "a list of a false length": () => counted([], 2 ** 53 - 1),
  "a sparse list": () => counted(new Array<unknown>(listMax)),
  "an error with sparse parts": () =>
    Object.assign(new Error("hostile"), {
      errors: counted(new Array<unknown>(listMax)),
      data: counted([], listMax),
    }),
  "a huge text": () => hugeText,
  "a proxy that throws": () =>
    new Proxy({}, { get: trap, has: trap, ownKeys: trap, getOwnPropertyDescriptor: trap }),
};

/** Those that databases take, or refuse, in ways of their own. */
export const databaseValues: ReadonlySet<string> = new Set([
  "1.5",
  "2 ** 53",
  '"\\0"',
  '"\\ud800"',
  "a long text",
]);

/** A property that nothing has. */
export const misspelt = "tiemout";

/** Where in the arguments of a call: `[1, "items", 0, "kind"]`. */
export type Path = readonly (string | number)[];

export function isPlain(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype
  );
}

/** Every place in some arguments: they themselves, their properties, the properties of those. */
export function* pathsOf(value: unknown, at: Path = []): Generator<Path, void> {
  if (at.length > 0) yield at;
  if (Array.isArray(value))
    for (const index of value.keys()) yield* pathsOf((value as unknown[])[index], [...at, index]);
  else if (isPlain(value))
    for (const key of Object.keys(value)) yield* pathsOf(value[key], [...at, key]);
}

export function valueAt(whole: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, key) => (value as Record<string | number, unknown>)[key],
    whole,
  );
}

/** The same arguments with another value in one place. */
export function withValue<T>(whole: T, path: Path, value: unknown): T {
  const [key, ...rest] = path;
  if (key === undefined) return value as T;
  const inner = withValue((whole as Record<string | number, unknown>)[key], rest, value);
  return (Array.isArray(whole) ? whole.with(Number(key), inner) : { ...whole, [key]: inner }) as T;
}
