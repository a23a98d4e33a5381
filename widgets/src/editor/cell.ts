import type { View } from "../view";
export function decorateCell(_el: HTMLElement, _view: View): () => void {
  return () => {};
}
