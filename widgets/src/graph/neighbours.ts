/** The lists that the placement of a group works on. */

/** Plain arrays: groups are many and small, and typed arrays are dear to make. */
export const zeros = (length: number): number[] => new Array<number>(length).fill(0);

/** Who is above (or below) each vertex, and where it wants the vertex from there: linked lists. */
export class Neighbours {
  readonly vertex: number[] = [];
  readonly shift: number[] = [];
  readonly next: number[] = [];
  readonly #heads: number[] = [];

  add(of: number, vertex: number, shift: number): void {
    while (this.#heads.length <= of) this.#heads.push(-1);
    this.next.push(this.#heads[of]!);
    this.shift.push(shift);
    this.#heads[of] = this.vertex.push(vertex) - 1;
  }

  first(of: number): number {
    return this.#heads[of] ?? -1;
  }

  /** The one neighbour of a vertex; -1 when there is none or more. */
  only(of: number): number {
    const at = this.first(of);
    return at >= 0 && this.next[at]! < 0 ? at : -1;
  }
}
