import { expect, test } from "vitest";
import { blobs } from "../../src/blobs.ts";
import { executions } from "../../src/executions.ts";
import { bytesOf } from "../conformance/blob/owners.ts";
import { keyedCodec } from "../fixtures/keyed-codec.ts";
import { Barrier } from "./barrier.ts";
import { withPlace, type Place } from "./place.ts";

/** Runs a rival while a write without a codec, in a database without values, is held before its commit. */
async function beside(place: Place, rival: (barrier: Barrier) => Promise<void>): Promise<void> {
  const database = await place.open();
  const { put } = blobs(database);
  await put(bytesOf("first"));
  const barrier = await Barrier.raise(place);
  const part = put.prepare(bytesOf("held"));
  const held = database.write(
    "held",
    function* () {
      yield* part();
      yield* barrier.stop();
    },
    { isolation: "readCommitted" },
  );
  await barrier.stopped(1);
  await rival(barrier);
  await held;
}

test("writes without a codec do not wait for each other, though there is no value yet", () =>
  withPlace((place) =>
    beside(place, async (barrier) => {
      const { put } = blobs(await place.open());
      expect(await put(bytesOf("second"))).toMatchObject({ size: 6 });
      await barrier.lift();
    }),
  ));

test("a codec waits for them before it takes the database over", () =>
  withPlace((place) =>
    beside(place, async (barrier) => {
      const log = executions(await place.open(), { payload: keyedCodec("one") });
      const created = log.create({ id: "a", function: "f", input: "secret" });
      await barrier.settled(2, place);
      await barrier.lift();
      expect(await created).toMatchObject({ id: "a", existed: false });
    }),
  ));
