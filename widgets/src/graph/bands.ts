/** Finds what lies in a strip of the drawing: things are kept by the horizontal bands they touch. */

const BAND = 512;

export class Bands<T> {
  readonly #bands: T[][] = [];

  constructor(things: Iterable<T>, extent: (thing: T) => [top: number, bottom: number]) {
    for (const thing of things) {
      const [top, bottom] = extent(thing);
      for (let band = this.#at(top); band <= this.#at(bottom); band++) {
        (this.#bands[band] ??= []).push(thing);
      }
    }
  }

  /** The things between two heights, each once, in the order in which they were given. */
  between(top: number, bottom: number): Set<T> {
    const found = new Set<T>();
    const last = Math.min(this.#at(bottom), this.#bands.length - 1);
    for (let band = this.#at(top); band <= last; band++) {
      for (const thing of this.#bands[band] ?? []) found.add(thing);
    }
    return found;
  }

  #at(y: number): number {
    return Math.max(0, Math.floor(y / BAND));
  }
}
