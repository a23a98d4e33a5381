/**
 * A tokenizer for one line at a time. It keeps no state between lines on purpose: output code holds
 * whole kernels inside ''' strings, which a true lexer would paint as one string.
 */
export type Language = "python" | "cpp" | "ptx";
export type Token = { text: string; kind: "" | "c" | "s" | "d" | "f" | "k" };

const words = (text: string): Set<string> => new Set(text.split(" "));

const KEYWORDS: Record<Language, Set<string>> = {
  python: words(
    "False None True and as assert async await break class continue def del elif else except " +
      "finally for from global if import in is lambda match nonlocal not or pass raise return " +
      "try while with yield",
  ),
  cpp: words(
    "alignas auto bool break case char class const constexpr continue default delete do double " +
      "else enum explicit extern false float for if inline int int32_t int64_t long namespace " +
      "new nullptr operator private public return short signed sizeof static struct switch " +
      "template this true typename uint8_t unsigned using void volatile while __global__ " +
      "__device__ __shared__",
  ),
  ptx: words("reg param local shared global const entry func visible"),
};

/** Groups: comment, string, decorator or directive, number, word. */
const PATTERNS: Record<Language, RegExp> = {
  python:
    /(#.*$)|("""|'''|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|(@[\w.]+)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g,
  cpp: /(\/\/.*$|\/\*.*?\*\/)|("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|(^\s*#\s*\w+)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g,
  ptx: /(\/\/.*$)|("(?:\\.|[^"\\])*"?)|(\.[a-z]\w*|%\w+)|(\b0?[xf]?\d[\w.]*)|([A-Za-z_$]\w*)/g,
};
const KINDS = ["c", "s", "f", "d"] as const;
const LONGEST = 2000; // a longer line is shown, not coloured

export function tokenize(line: string, language: Language = "python"): Token[] {
  if (line.length > LONGEST) return [{ text: line, kind: "" }];
  const tokens: Token[] = [];
  const plain = (text: string): void => {
    const last = tokens[tokens.length - 1];
    if (last?.kind === "") last.text += text;
    else if (text) tokens.push({ text, kind: "" });
  };
  let end = 0;
  for (const match of line.matchAll(PATTERNS[language])) {
    plain(line.slice(end, match.index));
    end = match.index + match[0].length;
    const kind = kindOf(match, language);
    if (kind) tokens.push({ text: match[0], kind });
    else plain(match[0]);
  }
  plain(line.slice(end));
  return tokens;
}

function kindOf(match: RegExpMatchArray, language: Language): Token["kind"] {
  const group = KINDS.findIndex((_, index) => match[index + 1] !== undefined);
  if (group >= 0) return KINDS[group] ?? "";
  return KEYWORDS[language].has(match[0]) ? "k" : "";
}

/**
 * The lines on which a string that spans lines begins and those inside one, for a text that is
 * Python throughout: a cell or a file, never output code.
 */
export function stringLines(lines: readonly string[]): boolean[] {
  let open = "";
  return lines.map((line) => {
    const inside = open !== "";
    for (const [quote] of line.replace(/\\./g, "").matchAll(/"""|'''|#.*$/g)) {
      if (quote[0] === "#") {
        if (!open) break;
      } else if (!open) open = quote;
      else if (open === quote) open = "";
    }
    return inside;
  });
}
