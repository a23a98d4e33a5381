/**
 * Elements that stand for a Ref. They carry it as `data-dnx-ref`; one set of listeners on the root
 * turns pointing, focus and clicks into the selection, and one effect marks what is lit.
 */
import { effect } from "@preact/signals";
import { parseKey, refKey, type Ref, type Selection } from "./selection";

const ATTRIBUTE = "data-dnx-ref";
const SUPPRESS = "data-lm-suppress-shortcuts";

/** The attributes of an element that stands for a ref. */
export const linked = (ref: Ref | null | undefined): Record<string, string> =>
  ref ? { [ATTRIBUTE]: refKey(ref) } : {};

const refAt = (event: Event): Ref | null => {
  const element = (event.target as Element | null)?.closest?.(`[${ATTRIBUTE}]`);
  const key = element?.getAttribute(ATTRIBUTE);
  return key ? parseKey(key) : null;
};

/** A part of the app that talks to the selection itself, as the graph does. */
const isOwn = (event: Event): boolean =>
  !!(event.target as Element | null)?.closest?.("[data-dnx-own]");

/** Connect a root element to the selection; return what disconnects it. */
export function attach(root: HTMLElement, selection: Selection): () => void {
  const control = new AbortController();
  const on = <K extends keyof HTMLElementEventMap>(
    type: K,
    listener: (event: HTMLElementEventMap[K]) => void,
  ): void => root.addEventListener(type, listener, { signal: control.signal });

  on("pointerover", (event) => isOwn(event) || selection.set(refAt(event), "hover"));
  on("pointerleave", () => selection.set(null, "hover"));
  on("focusin", (event) => {
    const ref = isOwn(event) ? null : refAt(event);
    if (ref) selection.set(ref, "hover");
  });
  on("click", (event) => {
    const ref = isOwn(event) || dragged() ? null : refAt(event);
    if (ref) selection.set(ref, "pin");
  });
  on("keydown", (event) => {
    if (event.key === "Escape") selection.release();
    if (!isShortcut(event)) event.stopPropagation();
  });
  // JupyterLab listens on the document, before us. It leaves alone what bears this attribute: the
  // focused element itself, which some of its shortcuts select whatever lies around it.
  const suppress = (event: KeyboardEvent): void => {
    const target = event.target as Element;
    if (!root.contains(target)) return;
    for (const one of [target, root]) one.toggleAttribute(SUPPRESS, !isShortcut(event));
  };
  window.addEventListener("keydown", suppress, { signal: control.signal, capture: true });

  const paint = (): void => mark(root, selection);
  const observer = new MutationObserver(paint);
  observer.observe(root, { childList: true, subtree: true });
  const stop = effect(() => {
    selection.lit.value;
    paint();
  });
  return () => {
    control.abort();
    observer.disconnect();
    stop();
  };
}

/** Keys that are the notebook's everywhere, such as Ctrl+S; all others are ours. */
const isShortcut = (event: KeyboardEvent): boolean => event.ctrlKey || event.metaKey;

/** Text was selected with the mouse: that is no click on what lies beneath. */
const dragged = (): boolean => getSelection()?.type === "Range";

function mark(root: HTMLElement, selection: Selection): void {
  const lit = selection.lit.peek();
  const current = selection.current.peek();
  const now = current && refKey(current);
  for (const element of root.querySelectorAll<HTMLElement>(`[${ATTRIBUTE}]`)) {
    const key = element.getAttribute(ATTRIBUTE) ?? "";
    const state = key === now ? "now" : lit.has(key) ? "yes" : "";
    if ((element.dataset["lit"] ?? "") === state) continue;
    if (state) element.dataset["lit"] = state;
    else delete element.dataset["lit"];
  }
}
