/** The part of Vitest's JSON report that we read. */
export interface VitestReport {
  readonly testResults: readonly {
    /** The file's path. */
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
    }[];
  }[];
}

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/**
 * Counts one run. Whatever kept it from testing counts as a failure: no report,
 * a file that did not load, a required file that ran nothing, an error outside
 * of any test (a bad exit without a failed test).
 */
export function countRun(
  report: VitestReport | undefined,
  exitCode: number,
  requiredFiles: readonly string[],
): Counts & {
  readonly complaints: readonly string[];
  readonly skippedNames: readonly string[];
} {
  const complaints: string[] = [];
  const skippedNames: string[] = [];
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const ran = new Set<string>();
  for (const file of report?.testResults ?? []) {
    let executed = 0;
    for (const { status, fullName } of file.assertionResults) {
      if (status === "passed") counts.passed += 1;
      else if (status === "failed") counts.failed += 1;
      else {
        counts.skipped += 1;
        skippedNames.push(`${file.name}: ${fullName}`);
      }
      if (status === "passed" || status === "failed") executed += 1;
    }
    if (executed > 0) ran.add(file.name);
    else if (file.status === "failed") complaints.push(`${file.name} did not load.`);
  }
  for (const file of requiredFiles) if (!ran.has(file)) complaints.push(`${file} ran no test.`);
  if (report === undefined) complaints.push("Vitest left no report.");
  if (exitCode !== 0 && counts.failed === 0 && complaints.length === 0)
    complaints.push(`Vitest ended with code ${exitCode} and no failed test.`);
  return {
    ...counts,
    failed: counts.failed + complaints.length,
    complaints,
    skippedNames,
  };
}

/** The ids of the checklist that no passed test proves. A test names the ids at the start of its title. */
export function unprovenIds(
  reports: readonly VitestReport[],
  conformancePage: string,
): readonly string[] {
  const listed = [...conformancePage.matchAll(/^\| ([A-Z]{1,3}\d+) +\|/gm)].map(
    ([, id = ""]) => id,
  );
  const passed = reports
    .flatMap(({ testResults }) => testResults)
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === "passed");
  const proven = new Set(
    passed.flatMap(({ fullName }) =>
      [...fullName.matchAll(/\[([A-Z]{1,3}\d+)\]/g)].map(([, id]) => id),
    ),
  );
  return listed.filter((id) => !proven.has(id));
}

/** The closing line: plain, so that any reader of test output understands it. */
export function closingLine(runs: readonly Counts[]): string {
  const sum = (of: (counts: Counts) => number): number =>
    runs.reduce((total, counts) => total + of(counts), 0);
  const skipped = sum((counts) => counts.skipped);
  return (
    `${sum((counts) => counts.passed)} passed, ${sum((counts) => counts.failed)} failed` +
    (skipped === 0 ? "" : `, ${skipped} skipped`)
  );
}
