import { encodeBase64 } from "./base64.ts";
import { isHoldfastError, unreachable, type HoldfastError } from "../errors.ts";
import { notSerializable, unsupportedType } from "./not-serializable.ts";
import { storedError } from "./stored-error.ts";
import { objectKind } from "./value-kind.ts";
import { tooLarge, type ValueLimits } from "./value-limits.ts";
import type { PathStep } from "./value-path.ts";
import { ValuePlace } from "./value-place.ts";
import { marker, type Tag } from "./value-tags.ts";

/**
 * The form of a text. `stored` keeps the order of keys, as JSON.stringify does. `canonical` is for
 * hashing: keys are sorted, and stacks are omitted.
 */
type TextForm = "stored" | "canonical";

/** Returns the text of any supported value. The error names the place of an unsupported one. */
export function writeValue(value: unknown, form: TextForm, limits: ValueLimits): string {
  const writer = new ValueWriter(form, limits);
  try {
    writer.write(value);
  } catch (error) {
    // Getters and proxies run the caller's code, which may throw anything.
    throw isHoldfastError(error) ? error : writer.unreadable(error);
  }
  return writer.text;
}

class ValueWriter {
  text = "";
  readonly #form: TextForm;
  readonly #charactersMax: number;
  readonly #place = new ValuePlace();

  constructor(form: TextForm, limits: ValueLimits) {
    this.#form = form;
    this.#charactersMax = limits.charactersMax;
  }

  unreadable(cause: unknown): HoldfastError {
    const advice = "See the cause; pass data without getters and proxies.";
    const found = "a value that throws when it is read";
    return notSerializable(found, advice, this.#place.path, cause);
  }

  write(value: unknown): void {
    switch (typeof value) {
      case "string":
        return this.#string(value);
      case "boolean":
        return this.#append(String(value));
      case "number":
        return this.#number(value);
      case "bigint":
        return this.#tagged("bigint", `"${value}"`);
      case "undefined":
        return this.#append(`{"${marker}":"undefined"}`);
      case "object":
        return value === null ? this.#append("null") : this.#object(value);
      default:
        throw unsupportedType(value, this.#place.path);
    }
  }

  #append(text: string): void {
    this.#assertRoomFor(text.length);
    this.text += text;
  }

  /**
   * Checks the limit before a long text is built, since building it would block the process for a
   * while.
   */
  #assertRoomFor(characters: number): void {
    const size = this.text.length + characters;
    if (size > this.#charactersMax) throw tooLarge(size, this.#charactersMax);
  }

  #string(text: string, separator = ""): void {
    this.#assertRoomFor(text.length + 2);
    this.#append(separator + JSON.stringify(text));
  }

  #bytes(bytes: Uint8Array): void {
    this.#assertRoomFor(Math.ceil(bytes.length / 3) * 4);
    this.#tagged("bytes", `"${encodeBase64(bytes)}"`);
  }

  /** Writes a tag around a finished text, or around the output of `body`. */
  #tagged(tag: Tag, body: string | (() => void)): void {
    this.#append(`{"${marker}":"${tag}","value":`);
    if (typeof body === "string") this.#append(body);
    else body();
    this.#append("}");
  }

  #number(value: number): void {
    if (!Number.isFinite(value)) throw unsupportedType(value, this.#place.path);
    // -0 becomes 0. They are equal by ===, and an input must not differ because of the sign of
    // zero. RFC 8785 agrees.
    this.#append(JSON.stringify(value));
  }

  #object(object: object): void {
    const found = objectKind(object);
    switch (found?.kind) {
      case "array":
        return this.#array(found.value);
      case "plain":
        return this.#plain(found.value);
      case "date":
        return this.#date(found.value);
      case "bytes":
        return this.#bytes(found.value);
      case "map":
        return this.#map(found.value);
      case "set":
        return this.#set(found.value);
      case "error":
        return this.#error(found.value);
      case undefined:
        throw unsupportedType(object, this.#place.path);
      default:
        return unreachable(found);
    }
  }

  #array(items: readonly unknown[]): void {
    this.#place.within(items, () =>
      this.#list(items.length, (at) => {
        if (!Object.hasOwn(items, at)) throw this.#hole(at);
        this.#place.step(at, () => this.write(items[at]));
      }),
    );
  }

  #hole(at: number): HoldfastError {
    const advice = "Fill it with null or undefined.";
    const path = [...this.#place.path, at];
    return notSerializable("a hole in an array", advice, path);
  }

  #plain(object: object): void {
    this.#place.within(object, () => {
      if (Object.hasOwn(object, marker)) {
        this.#tagged("object", () => this.#fields(object));
      } else {
        this.#fields(object);
      }
    });
  }

  #fields(object: object): void {
    this.#refuseSymbolKeys(object);
    const keys = Object.keys(object);
    // The default order of sort() is by UTF-16 code unit, as RFC 8785 requires.
    if (this.#form === "canonical") keys.sort();
    let separator = "{";
    for (const key of keys) {
      this.#string(key, separator);
      this.#append(":");
      // Reads inside the step, so that the error of a throwing getter names its own place.
      this.#place.step(key, () => this.write(object[key as never]));
      separator = ",";
    }
    this.#append(keys.length === 0 ? "{}" : "}");
  }

  #refuseSymbolKeys(object: object): void {
    const enumerable = Object.getOwnPropertySymbols(object).some((symbol) =>
      Object.prototype.propertyIsEnumerable.call(object, symbol),
    );
    if (!enumerable) return;
    throw notSerializable(
      "a property whose key is a symbol",
      "Use a string as the key, or make the property non-enumerable to leave it out.",
      this.#place.path,
    );
  }

  #date(date: Date): void {
    if (Number.isNaN(date.getTime())) {
      const advice = "Check how it was made, or use null for a missing date.";
      throw notSerializable("an invalid Date", advice, this.#place.path);
    }
    this.#tagged("date", `"${date.toISOString()}"`);
  }

  #map(map: ReadonlyMap<unknown, unknown>): void {
    const keys = [...map.keys()];
    const values = [...map.values()];
    this.#place.within(map, () =>
      this.#tagged("map", () =>
        this.#list(keys.length, (index) => {
          this.#append("[");
          this.#inner({ of: "keys", index }, keys[index]);
          this.#append(",");
          this.#inner({ of: "values", index }, values[index]);
          this.#append("]");
        }),
      ),
    );
  }

  #set(set: ReadonlySet<unknown>): void {
    const items = [...set];
    this.#place.within(set, () =>
      this.#tagged("set", () =>
        this.#list(items.length, (index) => this.#inner({ of: "values", index }, items[index])),
      ),
    );
  }

  #error(error: Error): void {
    const stored = storedError(error, { stack: this.#form === "stored" });
    this.#tagged("error", () => this.#plain(stored));
  }

  #list(length: number, writeItem: (index: number) => void): void {
    // Each item takes a character and a comma, so a list that claims an excessive length is not
    // walked.
    this.#assertRoomFor(2 * length);
    this.#append("[");
    for (let index = 0; index < length; index += 1) {
      if (index > 0) this.#append(",");
      writeItem(index);
    }
    this.#append("]");
  }

  #inner(step: PathStep, value: unknown): void {
    this.#place.step(step, () => this.write(value));
  }
}
