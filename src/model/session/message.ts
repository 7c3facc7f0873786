const imagePlaceholder = "[Image attached]";
/** What a list shows of a message; the whole of it is in the graph. */
const charactersMax = 500;

/**
 * The text of a message, for lists of sessions: its parts without tool calls
 * and results, an image as a placeholder, joined by a blank line. Knows the
 * usual shapes: a text, or an object with `text`, `content` or `parts`.
 */
export function messageText(payload: unknown): string {
  const text = [...textsOf(payload)]
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .join("\n\n");
  return shortened(text.toWellFormed().replaceAll("\0", ""));
}

function* textsOf(payload: unknown): Generator<string, void> {
  if (typeof payload === "string") yield payload;
  else if (Array.isArray(payload))
    for (const part of payload as unknown[]) yield* textsOfPart(part);
  else if (isFields(payload))
    yield* textsOf(payload["parts"] ?? payload["content"] ?? payload["text"]);
}

function* textsOfPart(part: unknown): Generator<string, void> {
  if (typeof part === "string") yield part;
  if (!isFields(part)) return;
  switch (part["type"] ?? part["kind"] ?? "text") {
    case "text": {
      const text = part["text"] ?? part["content"];
      if (typeof text === "string") yield text;
      return;
    }
    case "image":
      yield imagePlaceholder;
      return;
    default:
  }
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Map)
  );
}

/** Cut between characters, never inside one. */
function shortened(text: string): string {
  if (text.length <= charactersMax) return text;
  return text
    .slice(0, charactersMax)
    .toWellFormed()
    .replace(/\uFFFD$/, "");
}
