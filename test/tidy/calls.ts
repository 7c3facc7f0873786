import { parse } from "./syntax.ts";
import type { Syntax } from "./syntax.ts";
import { isCode, isTest } from "./tree.ts";
import type { Tree } from "./tree.ts";

const useClock = "take the time from the Clock you are given (the real one is host/clock.ts)";
const useEntropy = "take it from the Entropy you are given (the real one is host/entropy.ts)";
const useMonotonic = "measure with monotonicMs of host/timers.ts";
const useTimers = "wait with sleep, later or soon of host/timers.ts";

/** Time and randomness are arguments; only host/ asks the machine for them. */
const replacements: Readonly<Record<string, string>> = {
  "Date.now": useClock,
  "new Date()": useClock,
  "performance.now": useMonotonic,
  "process.hrtime": useMonotonic,
  "Math.random": useEntropy,
  randomUUID: useEntropy,
  randomBytes: useEntropy,
  randomInt: useEntropy,
  getRandomValues: useEntropy,
  setTimeout: useTimers,
  setInterval: useTimers,
  setImmediate: useTimers,
  "node:timers": useTimers,
  "node:timers/promises": useTimers,
};

export function bannedCalls(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!file.startsWith("src/") || file.startsWith("src/host/")) continue;
    if (!isCode(file) || isTest(file)) continue;
    // Entries of worker threads are plain JavaScript and cannot import host/.
    if (file.endsWith("-thread.js")) continue;
    for (const node of parse(file, text).all()) {
      const name = machineAccess(node);
      const instead = name === undefined ? undefined : replacements[name];
      if (instead !== undefined)
        problems.push(`${file}:${node.firstLine}: ${name} is only for src/host/: ${instead}.`);
    }
  }
  return problems;
}

/** How the table above calls what this node reaches for, if anything. */
function machineAccess(node: Syntax): string | undefined {
  switch (node.type) {
    case "MemberExpression":
      return memberAccess(node);
    case "NewExpression":
      return node.child("callee")?.text === "Date" && node.children("arguments").length === 0
        ? "new Date()"
        : undefined;
    case "Identifier":
      return node.text.startsWith("set") && isReference(node) ? node.text : undefined;
    case "ImportSpecifier":
      return node.parent?.child("source")?.text.includes("node:")
        ? node.child("imported")?.text
        : undefined;
    case "ImportDeclaration":
      return String(node.child("source")?.value("value"));
    default:
      return undefined;
  }
}

function memberAccess(node: Syntax): string | undefined {
  const object = node.child("object")?.text;
  const property = node.child("property")?.text;
  // Interfaces of ours may have methods of these names; these objects' are
  // the machine's.
  if (object === "globalThis" || object === "crypto") return property;
  return `${object}.${property}`;
}

/** A use of the name itself, not a property, key or method that bears it. */
function isReference(node: Syntax): boolean {
  const parent = node.parent;
  switch (parent?.type) {
    case "MemberExpression":
      return node.is(parent.child("object"));
    case "Property":
      return node.is(parent.child("value"));
    case "MethodDefinition":
    case "PropertyDefinition":
    case "TSMethodSignature":
    case "TSPropertySignature":
      return !node.is(parent.child("key"));
    case "ImportSpecifier":
    case "TSQualifiedName":
      return false;
    default:
      return true;
  }
}
