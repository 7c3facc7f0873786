import { withFolder } from "../sqlite/place.ts";
import { ledgerSuite } from "./ledger.suite.ts";

ledgerSuite((body) =>
  withFolder(async (folder) => body({ database: await folder.open(), told: folder.file() })),
);
