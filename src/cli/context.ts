import type { Holdfast } from "../runtime/client/holdfast.ts";
import { tellsOfStop } from "../runtime/runtime-event.ts";
import { openForReading, openForWriting, type ReadableHoldfast } from "../open/open-existing.ts";
import { openHoldfast, type HoldfastOptions } from "../open/open-holdfast.ts";
import { isPostgresUrl } from "../open/open-holdfast.ts";
import type { Warning } from "../sql/database.ts";
import type { Damaged } from "../stores/damage.ts";
import type { CliConfig } from "./database/config.ts";
import { columnsOf, type CliHost } from "./host.ts";
import { configOf, targetOf, type GlobalOptions, type Target } from "./database/target.ts";
import { jsonText } from "./text/json.ts";
import { quoted } from "./text/quoted.ts";
import { harmless, styleOf, type Style } from "./text/style.ts";

/** What a command has while it runs: where to speak, and what it is about. */
export class CliContext {
  readonly host: CliHost;
  readonly options: GlobalOptions;
  readonly isJson: boolean;
  /** Paints what goes to standard output. */
  readonly style: Style;
  /** For everything that waits: aborted by Ctrl-C, and when nobody reads on. */
  readonly stop: AbortSignal;
  readonly #opened: (() => Promise<void>)[] = [];
  #target: Promise<Target> | undefined;

  constructor(host: CliHost, options: GlobalOptions) {
    this.host = host;
    this.options = options;
    this.isJson = options.json === true;
    this.style = styleOf(host.stdout, host);
    this.stop = host.stop;
  }

  /** What a command that is to be typed next needs to be about the same database: nothing, or ` --db …`. */
  get dbOption(): string {
    const { db, schema, config } = this.options;
    // A URL may have a password in it.
    const shown = db !== undefined && isPostgresUrl(db) ? "postgres://…" : db;
    return Object.entries({ db: shown, schema, config })
      .map(([name, value]) => value && ` --${name} ${quoted(value)}`)
      .join("");
  }

  /** How wide a line may be; undefined when another program reads it. */
  get width(): number | undefined {
    const { stdout } = this.host;
    return stdout.isTTY === true ? columnsOf(stdout) : undefined;
  }

  now(): number {
    return this.host.clock.now();
  }

  /** A line, or several, on standard output. */
  print(text: string): void {
    if (this.stop.reason !== "EPIPE") this.host.stdout.write(`${text}\n`);
  }

  /** The answer of a command under `--json`: one document, on one line. */
  printJson(value: unknown): void {
    this.print(jsonText(value));
  }

  /** The answer, in either form. */
  answer(value: unknown, text: () => string): void {
    if (this.isJson) this.printJson(value);
    else this.print(text());
  }

  /** What is beside the answer, on standard error: progress, hints. Left out under `--json`. */
  note(text: string): void {
    if (!this.isJson) this.host.stderr.write(`${harmless(text)}\n`);
  }

  /** Names rows that a list went past; who asked for JSON has them in the answer. */
  noteDamaged(damaged: readonly Damaged[]): void {
    for (const { table, key } of damaged)
      this.note(`Row ${key} of ${table} cannot be read: holdfast check${this.dbOption} says more.`);
  }

  /** The config file of the project, if there is one. */
  config(): Promise<CliConfig | undefined> {
    return configOf(this.options, this.host);
  }

  target(): Promise<Target> {
    return (this.#target ??= targetOf(this.options, this.host));
  }

  /** The same for commands that run code: what is not there is made. */
  targetToMake(): Promise<Target> {
    return (this.#target ??= targetOf(this.options, this.host, {
      mayBeMade: true,
    }));
  }

  /** Opened for code to run, as an app would: created and migrated. Says when nothing runs any more, since it must be opened anew. */
  async openForWork(
    log: NonNullable<HoldfastOptions["onEvent"]>,
    onStop: () => void = () => undefined,
  ): Promise<Holdfast> {
    const { pathOrUrl, options } = await this.targetToMake();
    const { onEvent = log } = options;
    const opened = await openHoldfast(pathOrUrl, {
      ...this.#told(options),
      onEvent(event) {
        if (tellsOfStop(event)) onStop();
        onEvent(event);
      },
    });
    this.closeLater(() => opened.close());
    return opened;
  }

  /** Opened once for the command, and closed when it ends. Creates, migrates and writes nothing. */
  async openForReading(
    onWarning: (text: string) => void = (text) => this.note(text),
  ): Promise<ReadableHoldfast> {
    const { pathOrUrl, options } = await this.target();
    const told = this.#told(options, onWarning);
    const opened = await openForReading(pathOrUrl, told);
    this.closeLater(() => opened.database.close());
    return opened;
  }

  /** The same for commands that change something. The database must be there. */
  async openForWriting(): Promise<Holdfast> {
    const { pathOrUrl, options } = await this.target();
    const opened = await openForWriting(pathOrUrl, this.#told(options));
    this.closeLater(() => opened.close());
    return opened;
  }

  /** Called when the command has ended, however it did; the last one first. */
  closeLater(close: () => Promise<void>): void {
    this.#opened.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#opened.splice(0).toReversed()) await close();
  }

  /** Warnings of the database are notes here, not process warnings with their traces. */
  #told(
    options: HoldfastOptions,
    tell: (text: string) => void = (text) => this.note(text),
  ): HoldfastOptions {
    const onWarning = ({ message }: Warning): void => tell(message);
    return {
      ...options,
      sqlite: { onWarning, ...options.sqlite },
      postgres: { onWarning, ...options.postgres },
      onEvent:
        options.onEvent ??
        (({ level, message }) => {
          if (level === "warn" || level === "error") this.note(message);
        }),
    };
  }
}
