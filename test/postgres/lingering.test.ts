import { lingeringSuite } from "../crash/lingering.suite.ts";
import { Place } from "./place.ts";

lingeringSuite(async () => {
  const place = await Place.prepared();
  const database = await place.open();
  return {
    place: `${place.url}#${place.schema}`,
    database,
    dispose: () => place.dispose(),
  };
});
