import type { Command } from "commander";

const begin = "<!-- commands: written by npm run cli-docs -->";
const end = "<!-- end of commands -->";

/** A page with the part between its marks replaced by what the program says of itself. */
export function withCommands(page: string, program: Command): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from)
    throw new Error(`The page has no place for the commands: ${begin} … ${end}`);
  const head = page.slice(0, from + begin.length);
  return `${head}\n\n${commandsText(program)}\n${page.slice(to)}`;
}

/** Every command with what it does, its arguments and its options. */
function commandsText(program: Command): string {
  return everyCommand(program, program.name())
    .map(({ command, path }) => {
      const usage = `### \`${[path, ...argumentNames(command)].join(" ")}\``;
      const about = sentence(command.description());
      const lines = [
        ...command.registeredArguments.map(
          (argument) =>
            `- \`${argument.name()}\`: ${argument.description}${choices(argument.argChoices)}.`,
        ),
        ...command.options
          .filter(({ hidden }) => !hidden)
          .map(
            ({ flags, description, argChoices }) =>
              `- \`${flags}\`: ${description}${choices(argChoices)}.`,
          ),
      ];
      return `${[usage, about, lines.join("\n")].filter((part) => part !== "").join("\n\n")}\n`;
    })
    .join("\n");
}

function everyCommand(
  parent: Command,
  path: string,
): readonly { readonly command: Command; readonly path: string }[] {
  // Without those by which the program starts itself.
  const shown = parent.createHelp().visibleCommands(parent);
  return parent.commands.flatMap((command) => {
    if (!shown.includes(command)) return [];
    const own = `${path} ${command.name()}`;
    return [{ command, path: own }, ...everyCommand(command, own)];
  });
}

function argumentNames(command: Command): readonly string[] {
  return command.registeredArguments.map((argument) => {
    const name = argument.variadic ? `${argument.name()}...` : argument.name();
    return argument.required ? `<${name}>` : `[${name}]`;
  });
}

/** What may be said, where not everything may. */
function choices(all: readonly string[] | undefined): string {
  if (all === undefined) return "";
  const named = all.map((choice) => `\`${choice}\``);
  const last = named.pop() ?? "";
  return `: ${named.length === 0 ? last : `${named.join(", ")} or ${last}`}`;
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
