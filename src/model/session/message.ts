const imagePlaceholder = "[Image attached]";
/** The longest text of a message in a list. The graph has the whole message. */
const charactersMax = 500;

/**
 * Returns the text of a message for lists of sessions: its parts without tool calls and results,
 * joined by a blank line, with a placeholder for each image. Accepts the usual shapes: a text, or
 * an object with `text`, `content` or `parts`.
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

/** Cuts between characters, never inside one. */
function shortened(text: string): string {
  if (text.length <= charactersMax) return text;
  return text
    .slice(0, charactersMax)
    .toWellFormed()
    .replace(/\uFFFD$/, "");
}
