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
import { barred, styleOf, withColoursOnly, type Style } from "./text/style.ts";

/** The context of a running command: its output and its database. */
export class CliContext {
  readonly host: CliHost;
  readonly options: GlobalOptions;
  readonly isJson: boolean;
  /** Paints what goes to standard output. */
  readonly style: Style;
  /** The signal for every wait: aborted by Ctrl-C, and when the output is closed. */
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

  /** The options that point a suggested command at the same database: empty, or ` --db …`. */
  get dbOption(): string {
    const { db, schema, config } = this.options;
    // A URL may have a password in it.
    const shown = db !== undefined && isPostgresUrl(db) ? "postgres://…" : db;
    return Object.entries({ db: shown, schema, config })
      .map(([name, value]) => value && ` --${name} ${quoted(value)}`)
      .join("");
  }

  /** The longest line in columns; undefined when another program reads it. */
  get width(): number | undefined {
    const { stdout } = this.host;
    return stdout.isTTY === true ? columnsOf(stdout) : undefined;
  }

  now(): number {
    return this.host.clock.now();
  }

  /** Prints lines on standard output. User data in them has been through `oneLine`, a table or `barred`. */
  print(text: string): void {
    if (this.stop.reason !== "EPIPE") this.host.stdout.write(`${withColoursOnly(text)}\n`);
  }

  /** Prints the answer under `--json`: one document, on one line. */
  printJson(value: unknown): void {
    this.print(jsonText(value));
  }

  /** Prints the answer as JSON or as text. */
  answer(value: unknown, text: () => string): void {
    if (this.isJson) this.printJson(value);
    else this.print(text());
  }

  /** Prints progress and hints on standard error. Prints nothing under `--json`. */
  note(text: string): void {
    if (!this.isJson) this.host.stderr.write(`${barred(text)}\n`);
  }

  /** Names unreadable rows that a list skipped; under `--json` they are in the answer. */
  noteDamaged(damaged: readonly Damaged[]): void {
    for (const { table, key } of damaged)
      this.note(
        `Row ${key} of ${table} is unreadable. Run npx holdfast check${this.dbOption} for details.`,
      );
  }

  /** The config file of the project, if there is one. */
  config(): Promise<CliConfig | undefined> {
    return configOf(this.options, this.host);
  }

  target(): Promise<Target> {
    return (this.#target ??= targetOf(this.options, this.host));
  }

  /** The same for commands that run code: a missing database is created. */
  targetToMake(): Promise<Target> {
    return (this.#target ??= targetOf(this.options, this.host, {
      mayBeMade: true,
    }));
  }

  /** Opens the database as an app would: creates and migrates it. Calls `onStop` when the worker stops for good and needs a new open. */
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

  /** The same for commands that need values. @throws HoldfastError `PAYLOAD_CODEC_MISSING`, `PAYLOAD_CODEC_WRONG` */
  async openForValues(): Promise<ReadableHoldfast> {
    const opened = await this.openForReading();
    if (opened.sealed !== undefined) throw opened.sealed;
    return opened;
  }

  /** Opens the database once for the command, and closes it at the end. Creates, migrates and writes nothing. */
  async openForReading(
    onWarning: (text: string) => void = (text) => this.note(text),
  ): Promise<ReadableHoldfast> {
    const { pathOrUrl, options } = await this.target();
    const told = this.#told(options, onWarning);
    const opened = await openForReading(pathOrUrl, told);
    this.closeLater(() => opened.database.close());
    return opened;
  }

  /** The same for commands that change data. The database must exist. */
  async openForWriting(): Promise<Holdfast> {
    const { pathOrUrl, options } = await this.target();
    const opened = await openForWriting(pathOrUrl, this.#told(options));
    this.closeLater(() => opened.close());
    return opened;
  }

  /** Registers a call for the end of the command, whatever its outcome; the last one runs first. */
  closeLater(close: () => Promise<void>): void {
    this.#opened.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#opened.splice(0).toReversed()) await close();
  }

  /** Routes warnings of the database to `note`, instead of process warnings with stack traces. */
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
