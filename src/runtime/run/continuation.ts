/** Returned by code that is to begin anew under its id: `return ctx.continueWith(input)`. */
export class Continuation {
  readonly input: unknown;

  constructor(input: unknown) {
    this.input = input;
  }
}
