import { notSerializable } from "./not-serializable.ts";
import { depthMax, tooDeep } from "./value-limits.ts";
import { pathText, type PathStep } from "./value-path.ts";

/** The place of a walk inside a value: the steps taken, and the enclosing containers. */
export class ValuePlace {
  readonly path: PathStep[] = [];
  readonly #containers: object[] = [];

  /** Visits a part one step further in. */
  step(step: PathStep, visit: () => void): void {
    this.path.push(step);
    visit();
    this.path.pop();
  }

  /** Visits the inside of a container, and refuses a cycle. */
  within(container: object, visit: () => void): void {
    // Searching a list is faster than keeping a Set: values are rarely ten levels deep.
    const level = this.#containers.indexOf(container);
    if (level >= 0) {
      const again = pathText(this.path.slice(0, level));
      const advice = `It leads back to ${again}: store an id in place of the reference.`;
      throw notSerializable("a cycle", advice, this.path);
    }
    if (this.#containers.length >= depthMax) throw tooDeep(this.path);
    this.#containers.push(container);
    visit();
    this.#containers.pop();
  }
}
