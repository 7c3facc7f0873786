/**
 * Returns a plain JSON value with the keys of every object in the order of UTF-16 code units, so
 * that JSON.stringify writes its canonical text. Returns the value itself when its keys are already
 * in order. Returns undefined when no JavaScript object can have that order.
 */
export function withSortedKeys(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  return Array.isArray(value) ? withSortedItems(value) : withSortedFields(value);
}

function withSortedItems(items: readonly unknown[]): unknown {
  const sorted = new Array<unknown>(items.length);
  let isSame = true;
  for (let at = 0; at < items.length; at += 1) {
    const item = items[at];
    const inner = withSortedKeys(item);
    if (inner === undefined) return undefined;
    sorted[at] = inner;
    isSame &&= inner === item;
  }
  return isSame ? items : sorted;
}

function withSortedFields(fields: object): unknown {
  const keys = Object.keys(fields);
  const isOrdered = inOrder(keys);
  if (!isOrdered) {
    // An object always lists keys that look like numbers first.
    if (keys.some(startsWithDigit)) return undefined;
    keys.sort();
  }
  const sorted: Record<string, unknown> = {};
  let isSame = isOrdered;
  for (const key of keys) {
    // Assigning to `__proto__` would not create a property.
    if (key === "__proto__") return undefined;
    const field = (fields as Readonly<Record<string, unknown>>)[key];
    const inner = withSortedKeys(field);
    if (inner === undefined) return undefined;
    sorted[key] = inner;
    isSame &&= inner === field;
  }
  return isSame ? fields : sorted;
}

function inOrder(keys: readonly string[]): boolean {
  for (let at = 1; at < keys.length; at += 1)
    if ((keys[at - 1] as string) > (keys[at] as string)) return false;
  return true;
}

function startsWithDigit(key: string): boolean {
  const first = key.charCodeAt(0);
  return first >= 48 && first <= 57;
}
