import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";

const STEP = 4; // percent

/** A border that can be dragged, or moved by arrow keys; it sets a CSS variable on its parent. */
export function Splitter(props: { label: string; variable: string }): VNode {
  const self = useRef<HTMLDivElement>(null);
  const [percent, set] = useState<number | null>(null);
  const apply = (value: number): void => {
    const bounded = Math.round(Math.max(15, Math.min(85, value)));
    self.current?.parentElement?.style.setProperty(props.variable, `${bounded}%`);
    set(bounded);
  };
  const measured = (): number => {
    const [before, parent] = [self.current?.previousElementSibling, self.current?.parentElement];
    if (!before || !parent) return 50;
    const [a, b] = [before.getBoundingClientRect(), parent.getBoundingClientRect()];
    return isRow(parent) ? (100 * a.width) / b.width : (100 * a.height) / b.height;
  };
  const drag = (event: PointerEvent): void => {
    const parent = self.current?.parentElement;
    if (!parent || !self.current?.hasPointerCapture(event.pointerId)) return;
    const box = parent.getBoundingClientRect();
    apply(
      isRow(parent)
        ? (100 * (event.clientX - box.left)) / box.width
        : (100 * (event.clientY - box.top)) / box.height,
    );
  };
  const keys: Record<string, number> = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
  return (
    <div
      ref={self}
      class="dnx-splitter"
      role="separator"
      aria-label={props.label}
      aria-valuenow={percent ?? 50}
      tabIndex={0}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        event.preventDefault();
      }}
      onPointerMove={drag}
      onKeyDown={(event) => {
        const step = keys[event.key];
        if (!step) return;
        apply((percent ?? measured()) + step * STEP);
        event.preventDefault();
      }}
    />
  );
}

const isRow = (element: Element): boolean => getComputedStyle(element).flexDirection === "row";
