import { describe, expect, test } from "vitest";
import { activity, schedule, workflow } from "../../../src/index.ts";
import { isHoldfastError } from "../../../src/model/errors.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";

/** What JavaScript lets through, and options do not mean. */
const hostile: Readonly<Record<string, unknown>> = {
  null: null,
  NaN: Number.NaN,
  '""': "",
  "{}": {},
  "[]": [],
  "5n": 5n,
  "a symbol": Symbol("s"),
  "a function": () => undefined,
  "-1": -1,
  "2 ** 60": 2 ** 60,
};

type Given = Readonly<Record<string, never>>;

/** Which of them is taken for an option, and what is thrown that has no code. */
async function taken(
  call: (options: Given) => unknown,
  names: readonly string[],
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of names)
    for (const [said, value] of Object.entries(hostile))
      try {
        await call({ [name]: value } as Given);
        found.push(`${name}: ${said}`);
      } catch (error) {
        if (!isHoldfastError(error)) found.push(`${name}: ${said}: ${String(error)}`);
      }
  return found;
}

const filters = [
  "function",
  "functionPrefix",
  "status",
  "topLevelOnly",
  "parent",
  "createdFrom",
  "createdTo",
  "idPrefix",
  "tag",
  "codeVersion",
  "concurrencyKey",
  "hideFinished",
] as const;
/** Any text is one to look for. */
const anyText = [
  'function: ""',
  'functionPrefix: ""',
  'parent: ""',
  'idPrefix: ""',
  'tag: ""',
  'codeVersion: ""',
  'concurrencyKey: ""',
];
const starts = ["id", "startAt", "deadline", "tags", "concurrencyKey", "metadata"];
const emptyStarts = ["tags: []", "metadata: {}"];
const works = ["concurrency", "codeVersion", "lease", "hotRunsMax", "hotBytesMax", "keepStreams"];
const pages = ["newerThan", "after", "limit", "timeout", "signal"];
const asking = [
  "kind",
  "function",
  "run",
  "tag",
  "askedBefore",
  "after",
  "limit",
  "signal",
  "timeout",
];
const anyAsked = ['function: ""', 'run: ""', 'tag: ""'];
const bulk = ["dryRun", "signal", "onProgress"];
const nap = workflow("nap", async (ctx) => ctx.sleep("1 day"));

/** Options that are none are refused by a code, wherever they are given. */
export function runtimeOptionsSuite(backend: Backend): void {
  describe("options", () => {
    test(
      "every store of a database with a payload codec and limits of its own can be asked",
      onRuntime(backend, async ({ another }) => {
        const reversed = (text: string): string => text.split("").toReversed().join("");
        const holdfast = await another({
          payload: {
            name: "reversed",
            encode: reversed,
            decode: reversed,
            hash: "sha256",
          },
          valueLimits: { charactersMax: 1_000 },
        });
        const { hash } = await holdfast.blobs.put(new Uint8Array([1, 2, 3]));
        expect(await holdfast.blobs.get(hash)).toMatchObject({ size: 3 });
        await holdfast.artifacts.put("modules", "main", new Uint8Array([4]));
        expect((await holdfast.artifacts.list("modules")).items).toHaveLength(1);
        await holdfast.sessions.create("s");
        const { id } = await holdfast.attachments
          .ofSession("s")
          .put(new Uint8Array([5]), { mediaType: "text/plain" });
        expect(id).toHaveLength(64);
      }),
    );

    test("of definitions and schedules are refused by a code when they mean nothing", async () => {
      const shared = ["input", "concurrency", "concurrencyPerKey", "keep", "keepFailed"];
      const body = async (): Promise<void> => undefined;
      expect(
        await taken(
          (given) => workflow("w", given, body),
          [...shared, "cleanupTimeout", "whenPoisoned"],
        ),
      ).toEqual([]);
      expect(
        await taken((given) => activity("a", given, body), [...shared, "timeout", "retry"]),
      ).toEqual(["retry: {}"]);
      expect(
        await taken(
          (retry) => activity("a", { retry }, body),
          ["maxRetries", "backoff", "maxBackoff"],
        ),
      ).toEqual([]);
      const cron = "0 2 * * *";
      expect(await taken((given) => schedule("s", given as never, nap), ["cron"])).toEqual([]);
      expect(
        await taken(
          (given) => schedule("s", { cron, ...given }, nap),
          ["timeZone", "catchUp", "catchUpMax", "overlap"],
        ),
      ).toEqual([]);
      expect(
        await taken((given) => schedule("s", { every: "1h", ...given }, nap), ["every", "from"]),
      ).toEqual([]);
    });

    test("that no JSON can hold are refused as terms of a schedule, and what was given is told", () => {
      const cyclic: Record<string, unknown> = {};
      cyclic["self"] = cyclic;
      let deep: unknown = 0;
      for (let level = 0; level < 100_000; level += 1) deep = [deep];
      for (const given of [cyclic, deep, 5n]) {
        const terms = given as string;
        expect(() => schedule("s", { cron: terms }, nap)).toThrow(
          expect.objectContaining({ code: "CRON_INVALID" }),
        );
        expect(() => schedule("s", { cron: "* * * * *", timeZone: terms }, nap)).toThrow(
          expect.objectContaining({ code: "TIME_ZONE_INVALID" }),
        );
      }
      expect(() => schedule("s", { cron: 5 as never }, nap)).toThrow(
        /^The cron expression is a number instead of a string\./,
      );
    });

    test(
      "of every call are refused by a code when they mean nothing, and nothing is written",
      onRuntime(backend, async ({ holdfast }) => {
        await holdfast.start(nap, undefined, { id: "kept", tags: ["t"] });
        const before = await holdfast.executions.get("kept");
        const { runs } = holdfast;
        const handle = holdfast.get(nap, "kept");
        const dryRun = { dryRun: true } as const;
        for (const [call, names, accepted] of [
          [(given) => holdfast.work([nap], given), works, []],
          [
            (given) => holdfast.start(nap, undefined, { id: "kept", ...given }),
            starts,
            emptyStarts,
          ],
          [(given) => holdfast.startMany(nap, [{ id: "kept", ...given }]), starts, emptyStarts],
          [(given) => handle.result(given), ["timeout", "signal"], []],
          [(given) => handle.cancel(given), ["reason", "force"], []],
          [(given) => runs.list(given), [...filters, ...pages], anyText],
          [(given) => holdfast.questions.list(given), asking, anyAsked],
          [(given) => runs.count(given), ["signal"], []],
          [(given) => runs.cancelAll(given, dryRun), filters, anyText],
          [
            (given) => runs.retryAll(given, dryRun),
            filters,
            anyText.filter((each) => !each.startsWith("parent")),
          ],
          [
            (given) => runs.cancelAll({ tag: "none" }, given),
            [...bulk, "reason", "force"],
            ["onProgress: a function"],
          ],
          [(given) => runs.pauseAll({ tag: "none" }, given), bulk, ["onProgress: a function"]],
          [(given) => runs.eraseAll({ tag: "none" }, given), bulk, ["onProgress: a function"]],
          [(given) => holdfast.close(given), ["timeout"], []],
          [(given) => holdfast.closeOnSignals(given), ["timeout", "signals"], ["signals: []"]],
        ] as const satisfies readonly (readonly [
          (options: Given) => unknown,
          readonly string[],
          readonly string[],
        ])[])
          expect(await taken(call, names)).toEqual(accepted);
        expect((await runs.list()).items).toHaveLength(1);
        expect(await holdfast.executions.get("kept")).toEqual(before);
      }),
    );

    test(
      "that are all undefined mean no runs to commands for many, and {} means all",
      onRuntime(backend, async ({ holdfast: { runs } }) => {
        const tag = undefined as unknown as string;
        for (const name of [
          "cancelAll",
          "pauseAll",
          "resumeAll",
          "unparkAll",
          "retryAll",
          "eraseAll",
        ] as const) {
          await expect(runs[name]({ tag })).rejects.toMatchObject({
            code: "OPTION_INVALID",
            message: expect.stringMatching(/\{\} for all\..*tag is undefined\./),
          });
          await expect(runs[name]({})).resolves.toMatchObject({ failed: 0 });
        }
      }),
    );
  });
}
