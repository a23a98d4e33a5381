/** The style sheet's colours, resolved for a canvas; read anew when the theme changes. */
export type ColourName =
  | "background"
  | "frame"
  | "box"
  | "group"
  | "border"
  | "edge"
  | "text"
  | "accent"
  | "lit-strong";

export class Palette {
  font = "monospace";
  readonly #colours = new Map<string, string>();
  readonly #observer: MutationObserver;
  readonly #scheme: MediaQueryList | undefined;
  readonly #refresh: () => void;

  readonly #host: HTMLElement;

  constructor(
    host: HTMLElement,
    changed: () => void,
  ) {
    this.#host = host;
    this.#refresh = () => {
      this.#colours.clear();
      changed();
    };
    // JupyterLab and VS Code say on <body> which theme is on; plain pages by the color scheme.
    this.#observer = new MutationObserver(this.#refresh);
    for (const element of [document.documentElement, document.body]) {
      this.#observer.observe(element, { attributes: true });
    }
    this.#scheme = window.matchMedia?.("(prefers-color-scheme: dark)");
    this.#scheme?.addEventListener("change", this.#refresh);
  }

  dispose(): void {
    this.#observer.disconnect();
    this.#scheme?.removeEventListener("change", this.#refresh);
  }

  colour(name: ColourName): string {
    return this.#resolved(`--dnx-g-${name}`);
  }

  hue(number: number): string {
    return this.#resolved(`--dnx-g-hue-${number}`);
  }

  /** A variable may hold anything that CSS can work out; an element's own colour is worked out. */
  #resolved(variable: string): string {
    let found = this.#colours.get(variable);
    if (found === undefined) {
      const probe = document.createElement("span");
      probe.style.color = `var(${variable})`;
      this.#host.append(probe);
      found = getComputedStyle(probe).color;
      probe.remove();
      this.#colours.set(variable, found);
    }
    return found;
  }
}
