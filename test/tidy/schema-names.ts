/**
 * The names a migration brings into the schema: "table t", "column t.c",
 * "index i", "constraint c". Migrations are plain DDL of our own, without
 * functions or quoted names, so a small reader is enough.
 */
export function namesIn(migration: string): ReadonlySet<string> {
  const text = migration.replaceAll(/--.*$/gm, "");
  const names = new Set<string>();
  for (const [, name] of text.matchAll(/\bCONSTRAINT\s+(\w+)/gi)) names.add(`constraint ${name}`);
  for (const [, name] of text.matchAll(
    /\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)/gi,
  ))
    names.add(`index ${name}`);
  for (const [, table, column] of text.matchAll(
    /\bALTER\s+TABLE\s+(\w+)\s+ADD\s+(?:COLUMN\s+)?(?!CONSTRAINT\b)(\w+)/gi,
  ))
    names.add(`column ${table}.${column}`);
  for (const created of text.matchAll(/\bCREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)\s*\(/gi)) {
    const table = created[1];
    names.add(`table ${table}`);
    const body = text.slice(created.index + created[0].length);
    for (const column of columnsOf(body)) names.add(`column ${table}.${column}`);
  }
  return names;
}

/** The columns of a table, given what follows its opening parenthesis. */
function* columnsOf(body: string): Generator<string, void> {
  let depth = 0;
  let entry = "";
  for (const character of body) {
    const ends = depth === 0 && (character === "," || character === ")");
    if (!ends) {
      if (character === "(") depth += 1;
      if (character === ")") depth -= 1;
      entry += character;
      continue;
    }
    const word = /^\s*(\w+)/.exec(entry)?.[1];
    if (word !== undefined && !tableConstraint.test(word)) yield word;
    if (character === ")") return;
    entry = "";
  }
}

const tableConstraint = /^(CONSTRAINT|PRIMARY|UNIQUE|FOREIGN|CHECK|EXCLUDE)$/i;
