import type { VNode } from "preact";
import { tokenize, type Language, type Token } from "./tokens";

/** Columns of a line to underline: from, to (exclusive, Infinity for the line's end). */
export type Span = [number, number];

/** One line of code, coloured; what lies in a span is underlined. */
export function Line(props: {
  text: string;
  language: Language;
  spans?: readonly Span[];
  string?: boolean;
}): VNode {
  const tokens: Token[] = props.string
    ? [{ text: props.text, kind: "s" }]
    : tokenize(props.text, props.language);
  return <code>{cut(tokens, props.spans ?? []).map(piece)}</code>;
}

type Piece = Token & { marked: boolean };

function piece({ text, kind, marked }: Piece, index: number): VNode | string {
  const content = marked ? <u>{text}</u> : text;
  if (!kind) return marked ? <u key={index}>{text}</u> : text;
  return (
    <span key={index} class={`dnx-${kind}`}>
      {content}
    </span>
  );
}

/** Cut tokens where a span begins or ends. */
function cut(tokens: Token[], spans: readonly Span[]): Piece[] {
  if (!spans.length) return tokens.map((token) => ({ ...token, marked: false }));
  const edges = spans.flat().sort((a, b) => a - b);
  const pieces: Piece[] = [];
  let start = 0;
  for (const { text, kind } of tokens) {
    const end = start + text.length;
    const stops = [start, ...edges.filter((edge) => edge > start && edge < end), end];
    for (let at = 0; at + 1 < stops.length; at++) {
      const [from, to] = [stops[at] ?? 0, stops[at + 1] ?? 0];
      const marked = spans.some(([first, last]) => first <= from && to <= last);
      pieces.push({ text: text.slice(from - start, to - start), kind, marked });
    }
    start = end;
  }
  return pieces;
}
