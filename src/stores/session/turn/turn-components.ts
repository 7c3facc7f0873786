import type { NewBlob } from "../../../model/blob.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import { rows, run } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";

/** A part of the checkpoint that is ready to be stored; without a blob it goes. */
export interface PreparedComponent {
  readonly name: string;
  readonly version: number;
  readonly hash: string;
  readonly blob: NewBlob | null;
}

export interface ComponentRow {
  readonly name: string;
  readonly version: number;
  readonly revision: number;
  readonly hash: string;
  readonly blob: string;
}

export function* componentRows(session: number): Tx<readonly ComponentRow[]> {
  return yield* rows<ComponentRow>(sql`
    SELECT name, version, revision, hash, blob FROM holdfast_session_component
    WHERE session = ${session} ORDER BY name`);
}

/** Parts of a checkpoint without their content. */
export type Manifest = Readonly<
  Record<string, { readonly version: number; readonly revision: number }>
>;

/** Writes the parts that changed, whose blobs were put before, and leaves the others, with their revision. Tells which. */
export function* writeComponents(
  session: number,
  revision: number,
  given: readonly PreparedComponent[],
  stored: readonly ComponentRow[],
): Tx<Manifest> {
  const changed = new Map<string, Manifest[string]>();
  for (const component of given) {
    const { name, version, hash, blob } = component;
    const before = stored.find((other) => other.name === name);
    if (blob === null) {
      if (before === undefined) continue;
      yield* run(sql`
        DELETE FROM holdfast_session_component WHERE session = ${session} AND name = ${name}`);
      continue;
    }
    if (isUnchanged(component, before)) continue;
    changed.set(name, { version, revision });
    yield* run(sql`
      INSERT INTO holdfast_session_component (session, name, version, revision, hash, blob)
      VALUES (${session}, ${name}, ${version}, ${revision}, ${hash}, ${blob.hash})
      ON CONFLICT (session, name) DO UPDATE SET
        version = excluded.version, revision = excluded.revision, hash = excluded.hash, blob = excluded.blob`);
  }
  return Object.fromEntries(
    [...changed].toSorted(([left], [right]) => (left < right ? -1 : 1)),
  );
}

/** The blobs of those parts that are to be written. */
export function newComponentBlobs(
  given: readonly PreparedComponent[],
  stored: readonly ComponentRow[],
): readonly NewBlob[] {
  return given.flatMap((component) => {
    const before = stored.find(({ name }) => name === component.name);
    return isUnchanged(component, before) ? [] : (component.blob ?? []);
  });
}

/** The blobs that those parts refer to until they are written. */
export function replacedComponentBlobs(
  given: readonly PreparedComponent[],
  stored: readonly ComponentRow[],
): readonly string[] {
  return given.flatMap((component) => {
    const before = stored.find(({ name }) => name === component.name);
    return before === undefined || isUnchanged(component, before)
      ? []
      : before.blob;
  });
}

function isUnchanged(
  { version, hash }: PreparedComponent,
  before: ComponentRow | undefined,
): boolean {
  return before?.hash === hash && before.version === version;
}

/** A blob that a row refers to and that is not there. */
export function blobMissing(table: string, key: string): Error {
  return corruptRow(table, key, "refers to a blob that does not exist");
}
