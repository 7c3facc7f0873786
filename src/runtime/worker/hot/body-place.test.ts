import { expect, test } from "vitest";
import { HoldfastError } from "../../../model/errors.ts";
import { manualClock } from "../../../model/time/clock.ts";
import { BodyPlace } from "./body-place.ts";

const refusal = (code: ConstructorParameters<typeof HoldfastError>[0]): HoldfastError =>
  new HoldfastError(code, "no", {});

/** A place whose body has thrown an error, or has ended. */
function after(thrown?: HoldfastError): BodyPlace {
  const place = new BodyPlace(manualClock(1_000));
  const body = place.during(function* () {
    if (thrown !== undefined) throw thrown;
    return 1;
  });
  try {
    body.next();
  } catch {
    // The caller is asked about it below.
  }
  return place;
}

test("a statement that a pooler's session does not know fails no transaction, not even in its body", () => {
  const lost = refusal("PREPARED_STATEMENT_LOST");
  expect(after(lost).rolledBackBy(lost)).toBeUndefined();
  expect(after().rolledBackBy(lost)).toBeUndefined();
});

test.each(["EXECUTION_PAUSED", "EXECUTION_CANCELLING", "VERSION_CONFLICT"] as const)(
  "%s behind a body is about the log, and in a body it is the user's own error",
  (code) => {
    const thrown = refusal(code);
    expect(after().rolledBackBy(thrown)).toBeUndefined();
    expect(after(thrown).rolledBackBy(thrown)).toEqual({
      thrown,
      isOfTheDatabase: false,
      ran: { began: 1_000, ended: 1_000 },
    });
  },
);
