/** The width of text on a terminal, and cutting to a width. The text is one line without control characters. */

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** East Asian wide and full-width characters, and pictures. */
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|^\p{Emoji_Presentation}|^\p{Emoji}\ufe0f|^[\u{20000}-\u{3fffd}]/u;

function columnsOf(grapheme: string): number {
  return wide.test(grapheme) ? 2 : 1;
}

export function widthOf(text: string): number {
  // The usual case: each character is one column.
  if (/^[\u0020-\u007e]*$/.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of graphemes.segment(text)) columns += columnsOf(segment);
  return columns;
}

/** Cuts a text that is too wide, and adds an ellipsis. */
export function clipped(text: string, columnsMax: number): string {
  if (widthOf(text) <= columnsMax) return text;
  if (columnsMax < 1) return "";
  let kept = "";
  let columns = 1;
  for (const { segment } of graphemes.segment(text)) {
    columns += columnsOf(segment);
    if (columns > columnsMax) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** Cuts or pads a text to an exact width. */
export function fitted(text: string, columns: number): string {
  const cut = clipped(text, columns);
  return cut + " ".repeat(Math.max(0, columns - widthOf(cut)));
}
