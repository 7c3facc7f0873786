import { describe, expect, test } from "vitest";
import { closingLine, countRun, unprovenIds } from "../../scripts/test-report.ts";

function file(name: string, ...statuses: readonly string[]) {
  return {
    name,
    status: statuses.includes("failed") ? "failed" : "passed",
    assertionResults: statuses.map((status, index) => ({
      status,
      fullName: `test ${index}`,
    })),
  };
}

describe("counting a test run", () => {
  test("adds up what passed, failed and was skipped, and names the last", () => {
    const report = {
      testResults: [file("a", "passed", "failed"), file("b", "passed", "pending")],
    };
    expect(countRun(report, 1, ["a", "b"])).toEqual({
      passed: 2,
      failed: 1,
      skipped: 1,
      complaints: [],
      skippedNames: ["b: test 1"],
    });
  });

  test("counts a required file that ran nothing as a failure", () => {
    const report = { testResults: [file("a", "passed"), file("b", "pending")] };
    expect(countRun(report, 0, ["a", "b", "c"])).toMatchObject({
      passed: 1,
      failed: 2,
      complaints: ["b ran no test.", "c ran no test."],
    });
  });

  test("counts a file that did not load as a failure", () => {
    const report = {
      testResults: [{ name: "a", status: "failed", assertionResults: [] }],
    };
    expect(countRun(report, 1, [])).toMatchObject({
      failed: 1,
      complaints: ["a did not load."],
    });
  });

  test("counts a run without a report as a failure", () => {
    expect(countRun(undefined, 0, [])).toMatchObject({
      failed: 1,
      complaints: ["Vitest left no report."],
    });
  });

  test("counts an error outside of any test as a failure", () => {
    const report = { testResults: [file("a", "passed")] };
    expect(countRun(report, 1, ["a"])).toMatchObject({
      passed: 1,
      failed: 1,
      complaints: ["Vitest ended with code 1 and no failed test."],
    });
  });
});

test("the closing line sums the runs and mentions skipped tests only if any", () => {
  const first = { passed: 3, failed: 0, skipped: 0 };
  expect(closingLine([first, { passed: 4, failed: 1, skipped: 0 }])).toBe("7 passed, 1 failed");
  expect(closingLine([first, { passed: 0, failed: 0, skipped: 2 }])).toBe(
    "3 passed, 0 failed, 2 skipped",
  );
});

describe("the ids that no test proves", () => {
  const page =
    "| id | what holds |\n| ---- | --- |\n| A1   | One. |\n| AX12 | Two. |\n| E3   | Three. |\n";
  const report = (status: string, ...titles: readonly string[]) => ({
    testResults: [
      {
        name: "a",
        status: "passed",
        assertionResults: titles.map((fullName) => ({ status, fullName })),
      },
    ],
  });

  test("are those of the page that no title of a passed test begins with", () => {
    const passed = report("passed", "on a file [A1] opens", "[AX12] [E9] sweeps");
    expect(unprovenIds([passed, report("failed", "[E3] restarts")], page)).toEqual(["E3"]);
  });

  test("may be proven in any of several runs", () => {
    const runs = [report("passed", "[A1] [AX12] opens"), report("passed", "[E3] restarts")];
    expect(unprovenIds(runs, page)).toEqual([]);
  });
});
