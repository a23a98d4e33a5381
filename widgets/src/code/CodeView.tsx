/** Generated code in a virtual list: lines that belong to a kernel stand for that kernel. */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { Ref, Selection } from "../selection";
import { Line } from "./Line";
import type { Language } from "./tokens";
import { longest, VirtualList } from "./VirtualList";

export function CodeView(props: {
  label: string;
  code: string;
  language: Language;
  selection: Selection;
  refOf(line: number): Ref | null;
  start?: number;
}): VNode {
  const { code, language, selection, refOf, label, start } = props;
  const lines = useMemo(() => code.replace(/\n$/, "").split("\n"), [code]);
  const wide = `${String(lines.length).length + 2.5}ch`;
  return (
    <VirtualList
      label={label}
      className="dnx-code"
      count={lines.length}
      columns={longest(lines)}
      selection={selection}
      {...(start === undefined ? {} : { start: start - 1 })}
      refOf={(index) => refOf(index + 1)}
      row={(index) => (
        <>
          <span class="dnx-num" style={{ minWidth: wide }}>
            {index + 1}
          </span>
          <Line text={lines[index] ?? ""} language={language} />
        </>
      )}
    />
  );
}
