// Enough to recognise an id in a log line. Error messages must not carry text that a caller pasted
// by mistake.
const charactersMax = 80;

/** Returns a caller's text as a message shows it: quoted, and cut when long. */
export function excerpt(text: string): string {
  return JSON.stringify(text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text);
}
