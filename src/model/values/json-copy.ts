// Deep enough for the data of errors. The limit also ends cycles.
const depthMax = 8;
/** A rough size of a number, a bracket or a comma. */
const tokenCharacters = 8;

/**
 * Returns a bounded copy of an object's JSON form. Returns undefined when it needs more characters
 * than are left, nests too deeply or is unreadable. Nothing beyond the bounds is read, even from a
 * huge value.
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

  /** Reads a value as JSON.stringify does. Undefined is omitted. */
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
      const { length } = value;
      this.#spend(length);
      return Array.from({ length }, (_, at) => this.read(value[at], depth + 1) ?? null);
    }
    // Listing a view creates one key per byte, so its length is spent first.
    if (ArrayBuffer.isView(value)) this.#spend(value.byteLength);
    if (Object.prototype.toString.call(value) === "[object String]")
      return this.read(value.valueOf(), depth + 1);
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
    // A proxy may report a length that is not a number.
    if (!(this.left >= 0)) throw new RangeError("It is too large.");
  }
}
