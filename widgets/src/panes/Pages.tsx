/** The lower half of the kernels: pages on the chosen kernel, and on all of them. */
import type { ComponentChildren, VNode } from "preact";
import type { Signal } from "@preact/signals";
import { CodeView } from "../code/CodeView";
import type { Language } from "../code/tokens";
import type { Compile, Kernel } from "../record";
import type { Ref } from "../selection";
import { Copy, Empty, Table, Tabs } from "../ui";
import type { View } from "../view";

/** What every set of pages is given; `page` is the one that the reader wants. */
export interface PagesProps {
  view: View;
  compile: Compile;
  kernel: Kernel | undefined;
  page: Signal<string>;
}

export interface Page {
  label: string;
  count?: number;
  /** What of it can be copied. */
  text?: string;
  show(): ComponentChildren;
}

export function Pages(props: { kernel: Kernel | undefined; pages: Page[]; page: Signal<string> }): VNode {
  const { kernel, pages, page } = props;
  const shown = pages.find((one) => one.label === page.value) ?? pages[0];
  if (!shown) return <p class="dnx-hint">Point at a kernel to see its nodes, lines and code.</p>;
  return (
    <div class="dnx-split-code">
      <div class="dnx-bar dnx-tools">
        <Tabs
          label="about the kernels"
          tabs={pages.map(({ label, count }) => ({ id: label, label, count }))}
          chosen={shown.label}
          choose={(label) => (page.value = label)}
        />
        <span class="dnx-room" />
        <span class="dnx-ellipsis">{kernel?.name}</span>
        {shown.text && <Copy text={() => shown.text ?? ""} title={`Copy the ${shown.label}`} />}
      </div>
      {shown.show()}
    </div>
  );
}

/** A page of a text whose lines may stand for something. */
export const codePage = (
  view: View,
  name: string,
  label: string,
  text: string,
  language: Language,
  refOf: (line: number) => Ref | null = () => null,
  start = 0,
): Page & { text: string } => ({
  label,
  text,
  show: () =>
    text ? (
      <CodeView
        key={name + label}
        label={`${label} of ${name}`}
        code={text}
        language={language}
        selection={view.selection}
        refOf={refOf}
        {...(start > 0 ? { start } : {})}
      />
    ) : (
      <Empty>{name} is a library call: there is no generated code.</Empty>
    ),
});

export type Fact = [name: string, value: ComponentChildren];

/** A page of facts, those that there are. */
export const factsPage = (label: string, what: string, facts: Fact[]): Page => ({
  label,
  show: () => (
    <div class="dnx-scroll">
      <Table
        label={`${label} of ${what}`}
        columns={["fact", "value"]}
        rows={facts.filter(([, value]) => !!value).map((cells) => ({ cells }))}
      />
    </div>
  ),
});

/** A page with a table of things, where there are any. */
export const tablePage = (
  label: string,
  columns: string,
  rows: { cells: ComponentChildren[]; to?: Ref | null }[],
): Page[] =>
  rows.length === 0
    ? []
    : [
        {
          label,
          count: rows.length,
          show: () => (
            <div class="dnx-scroll">
              <Table label={label} columns={columns.split("|")} rows={rows} />
            </div>
          ),
        },
      ];
