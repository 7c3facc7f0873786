/** One step into a value: a property, an index, or the n-th key or value of a Map or Set. */
export type PathStep = string | number | { readonly of: "keys" | "values"; readonly index: number };

const identifier = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
const charactersMax = 200;

/** Returns a path as code would spell it: `$.items[3]["unit price"]`. */
export function pathText(steps: readonly PathStep[]): string {
  const text = `$${steps.map(stepText).join("")}`;
  // The end names the place, so the middle is cut.
  if (text.length <= charactersMax) return text;
  return `${text.slice(0, 40)}…${text.slice(-(charactersMax - 41))}`;
}

function stepText(step: PathStep): string {
  if (typeof step === "number") return `[${step}]`;
  if (typeof step === "object") return `.${step.of}()[${step.index}]`;
  return identifier.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`;
}
