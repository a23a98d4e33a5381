// jsdom has no layout and no observers: enough of them for the panes to mount.
class Observer {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}
globalThis.ResizeObserver ??= Observer as unknown as typeof ResizeObserver;
globalThis.IntersectionObserver ??= Observer as unknown as typeof IntersectionObserver;
Element.prototype.scrollIntoView ??= () => {};
// It has no canvas either and says so each time: the drawing does without.
HTMLCanvasElement.prototype.getContext = (() => null) as never;
