import { ledgerSuite } from "../crash/ledger.suite.ts";
import { withPlace } from "./place.ts";

ledgerSuite((body) =>
  withPlace(async (place) =>
    body({
      database: await place.open(),
      told: `${place.url}#${place.schema}`,
    }),
  ),
);
