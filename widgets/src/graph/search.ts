/** Search in a graph: every word has to be found somewhere in what is told of a node. */
import { ownFrame, placeText, valueText } from "../record";
import type { GraphModel } from "./model";

export class Search {
  readonly #texts: string[];

  constructor(model: GraphModel) {
    this.#texts = model.nodes.map((node) => {
      const frame = ownFrame(node);
      const modules = node.module_stack.map((step) => step.join(" ")).join(" ");
      const words = [node.name, node.target, node.op, modules, valueText(node.value)];
      if (frame) words.push(placeText(frame));
      return words.join(" ").toLowerCase();
    });
  }

  /** The nodes that fit; null when there is nothing to look for. */
  find(query: string): Set<number> | null {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return null;
    const found = new Set<number>();
    this.#texts.forEach((text, at) => {
      if (words.every((word) => text.includes(word))) found.add(at);
    });
    return found;
  }
}
