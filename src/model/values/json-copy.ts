// Deep enough for what errors carry, and the way in which cycles end.
const depthMax = 8;
/** What a number, a bracket or a comma may take, roughly. */
const tokenCharacters = 8;

/**
 * A copy of what an object offers as JSON, in bounds: undefined when it takes
 * more characters than are left, nests too deeply or cannot be read. Nothing
 * is asked of a value beyond its bounds, however large it is.
 */
export function jsonCopy(
  value: unknown,
  charactersMax: number,
): { readonly copy: unknown; readonly characters: number } | undefined {
  try {
    const reader = new BoundedReader(charactersMax);
    const copy = reader.read(value, 0);
    return copy === undefined ? undefined : { copy, characters: charactersMax - reader.left };
  } catch {
    return undefined;
  }
}

class BoundedReader {
  left: number;

  constructor(charactersMax: number) {
    this.left = charactersMax;
  }

  /** As JSON.stringify sees it. Undefined is left out. */
  read(value: unknown, depth: number): unknown {
    this.#spend(tokenCharacters);
    switch (typeof value) {
      case "string":
        this.#spend(value.length);
        return value;
      case "number":
        return Number.isFinite(value) ? value : null;
      case "boolean":
        return value;
      case "bigint":
        return this.read(value.toString(), depth);
      case "object":
        return value === null ? null : this.#object(value, depth);
      default:
        return undefined;
    }
  }

  #object(value: object, depth: number): unknown {
    if (depth >= depthMax) throw new RangeError("It nests too deeply.");
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === "function") return this.read(toJSON.call(value), depth + 1);
    if (Array.isArray(value)) {
      this.#spend(value.length);
      return value.map((item) => this.read(item, depth + 1) ?? null);
    }
    const entries: [string, unknown][] = [];
    for (const key in value)
      if (Object.hasOwn(value, key)) {
        this.#spend(key.length);
        const read = this.read(value[key as never], depth + 1);
        if (read !== undefined) entries.push([key, read]);
      }
    return Object.fromEntries(entries);
  }

  #spend(characters: number): void {
    this.left -= characters;
    if (this.left < 0) throw new RangeError("It is too large.");
  }
}
