// Enough to recognise an id in a log line; error messages are not a place to
// carry what a caller pasted by mistake.
const charactersMax = 80;

/** How a message shows text that a caller gave: quoted, and cut when long. */
export function excerpt(text: string): string {
  return JSON.stringify(text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text);
}
