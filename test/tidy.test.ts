import { describe, expect, test } from "vitest";
import { projectRoot } from "../scripts/project.ts";
import { renderThreads } from "../scripts/render-threads.ts";
import { bannedCalls } from "./tidy/calls.ts";
import {
  absentFromRecipes,
  brokenMap,
  conformanceIds,
  errorDocumentation,
  readmeSnippets,
} from "./tidy/documents.ts";
import { tooManyNames } from "./tidy/doors.ts";
import { growthTable, partFigures, renderGrowth, unexplainedGrowth } from "./tidy/growth.ts";
import { closedDoors, forwardingFiles, mutualImports, writingAnswers } from "./tidy/house.ts";
import { doorsAndBarrels, importDirections } from "./tidy/imports.ts";
import type { ImportRules } from "./tidy/imports.ts";
import { leftBehind } from "./tidy/leftovers.ts";
import { lockedDependencies } from "./tidy/lockfile.ts";
import {
  embeddedMigrations,
  frozenMigrations,
  migrationNumbers,
  migrationTwins,
} from "./tidy/migrations.ts";
import { undelegatedOperations } from "./tidy/operations.ts";
import { shippedLinks } from "./tidy/shipped.ts";
import { emptyFileNames, longFiles, longFunctions } from "./tidy/sizes.ts";
import { embeddedThreads } from "./tidy/threads.ts";
import { readTree } from "./tidy/tree.ts";
import { clausesForSummaries, translatedWords } from "./tidy/words.ts";

/**
 * Habits a machine can hold. Each rule reads the tree and returns problems
 * that name their fix; test/tidy/ has the rules and the proofs that they fail.
 */
const tree = readTree();

/** The direction of imports between the folders of src/. Doors may import any. */
const mayImport: ImportRules = {
  model: [],
  host: ["model"],
  sql: ["model"],
  stores: ["model", "sql"],
  backends: ["model", "sql", "stores", "host"],
  runtime: ["model", "sql", "stores", "host"],
  open: ["model", "sql", "stores", "backends", "runtime", "host"],
  testing: ["model", "sql", "stores", "backends", "runtime", "host", "open"],
  http: ["model", "runtime"],
  inspector: ["http/api.ts"],
  // What it shows comes from pages of the stores, through what open/ opened.
  cli: ["model", "host", "sql", "stores", "runtime", "open", "http"],
};

/**
 * Reached in November 2026 were 252, from 451. The runtime came with about thirty of its own, the
 * test kit with fifteen, questions, live output and options of transactions with ten.
 */
const doorNamesMax = 310;

describe("layout", () => {
  test("folders import only what the layout allows", () => {
    expect(importDirections(tree, mayImport)).toEqual([]);
  });

  test("doors only re-export, and only doors do", () => {
    expect(doorsAndBarrels(tree)).toEqual([]);
  });

  test("doors hand out few names", () => {
    expect(tooManyNames(tree, doorNamesMax)).toEqual([]);
  });

  test("stores see of each other their pages and rows alone", () => {
    expect(closedDoors(tree)).toEqual([]);
  });

  test("no two folders of stores or of the runtime import each other", () => {
    expect(mutualImports(tree)).toEqual([]);
  });

  test("parts grow only with a reason", () => {
    console.log(`${growthTable} as it would be now:\n${renderGrowth(partFigures(tree))}`);
    expect(unexplainedGrowth(tree)).toEqual([]);
  });

  test("files do more than forward", () => {
    expect(forwardingFiles(tree)).toEqual([]);
  });

  test("files are short", () => {
    expect(longFiles(tree)).toEqual([]);
  });

  test("functions are short", () => {
    expect(longFunctions(tree)).toEqual([]);
  });

  test("files are named after what they do", () => {
    expect(emptyFileNames(tree)).toEqual([]);
  });
});

describe("code", () => {
  test("time and randomness come from host/ alone", () => {
    expect(bannedCalls(tree)).toEqual([]);
  });

  test("what is named like an answer writes nothing", () => {
    expect(writingAnswers(tree)).toEqual([]);
  });

  test("every operation that is called is delegated to", () => {
    expect(undelegatedOperations(tree)).toEqual([]);
  });

  test("nothing unfinished, switched off or tied to a machine is left", () => {
    expect(leftBehind(tree)).toEqual([]);
  });
});

describe("migrations", () => {
  test("are numbered from 1 and come in twins", () => {
    expect(migrationNumbers(tree)).toEqual([]);
  });

  test("give both databases the same names", () => {
    expect(migrationTwins(tree)).toEqual([]);
  });

  test("are embedded as they are", () => {
    expect(embeddedMigrations(tree)).toEqual([]);
  });

  test("stay as they were released", () => {
    expect(frozenMigrations(tree)).toEqual([]);
  });
});

describe("threads and processes", () => {
  test("are embedded as they are, and short enough for a command line", () => {
    expect(embeddedThreads(tree, renderThreads(projectRoot))).toEqual([]);
  });
});

describe("package-lock.json", () => {
  test("has every dependency for every platform", () => {
    expect(lockedDependencies(tree)).toEqual([]);
  });
});

describe("words", () => {
  test("summaries begin with a noun or a verb", () => {
    expect(clausesForSummaries(tree)).toEqual([]);
  });

  test("words that read as translated stay away", () => {
    expect(translatedWords(tree)).toEqual([]);
  });
});

describe("documents", () => {
  test("explain every error code", () => {
    expect(errorDocumentation(tree)).toEqual([]);
  });

  test("lead to files that are there", () => {
    expect(brokenMap(tree)).toEqual([]);
  });

  test("give recipes whose files and scripts are there", () => {
    expect(absentFromRecipes(tree)).toEqual([]);
  });

  test("list the conformance ids that tests prove", () => {
    expect(conformanceIds(tree)).toEqual([]);
  });

  test("quote running examples in the README", () => {
    expect(readmeSnippets(tree)).toEqual([]);
  });

  test("of the package link to what the package has", () => {
    expect(shippedLinks(tree)).toEqual([]);
  });
});
