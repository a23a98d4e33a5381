/** Runs in the browser: shows a graph in the explorer's graph pane, and pans it. */
import { render } from "preact";
import { GraphPane } from "../src/graph/GraphPane";
import { Selection } from "../src/selection";
import { measured } from "./graphs";

const frame = (): Promise<number> => new Promise((done) => requestAnimationFrame(done));

/** Two frames later what was drawn in the first one is on the screen. */
const painted = async (): Promise<void> => {
  await frame();
  await frame();
};

const host = (): HTMLElement => document.getElementById("app")!;

/** Mount a graph; return the seconds until its first paint. */
async function open(name: string, recorded: unknown): Promise<number> {
  const { record, compile, graph } = measured(name, recorded);
  render(null, host());
  await painted();
  const start = performance.now();
  render(
    <GraphPane
      record={record}
      compile={compile}
      graph={graph}
      selection={new Selection(record.links)}
      colour="module"
      onStage={() => {}}
    />,
    host(),
  );
  await painted();
  return (performance.now() - start) / 1000;
}

/** Open all modules; return the seconds until they are painted. */
async function openAll(): Promise<number> {
  const button = [...host().querySelectorAll("button")].find((one) => one.textContent === "open all")!;
  const start = performance.now();
  button.click();
  await painted();
  return (performance.now() - start) / 1000;
}

/** Show another program's drawing as it is; return the seconds until it is painted. */
async function showSvg(svg: string): Promise<number> {
  const start = performance.now();
  host().innerHTML = svg;
  await painted();
  return (performance.now() - start) / 1000;
}

const drag = (stage: Element, kind: string, y: number): void => {
  stage.dispatchEvent(
    new PointerEvent(kind, { pointerId: 1, button: 0, buttons: 1, clientX: 300, clientY: y, bubbles: true }),
  );
};

/** Drag the drawing for some frames; return their durations in milliseconds. */
async function pan(frames: number): Promise<number[]> {
  const stage = host().querySelector<HTMLElement>(".dnx-g-stage")!;
  stage.setPointerCapture = () => {}; // the pointer is made up
  const durations: number[] = [];
  drag(stage, "pointerdown", 300);
  let last = await frame();
  for (let at = 1; at <= frames; at++) {
    drag(stage, "pointermove", 300 - 23 * at);
    const now = await frame();
    durations.push(now - last);
    last = now;
  }
  drag(stage, "pointerup", 0);
  return durations;
}

async function key(name: string): Promise<void> {
  host()
    .querySelector(".dnx-g-stage")!
    .dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  await painted();
}

const shown = (): number =>
  host().querySelectorAll(".dnx-g-node, .dnx-g-closed, .dnx-g-open").length;

Object.assign(window, { bench: { open, openAll, showSvg, pan, key, shown } });
