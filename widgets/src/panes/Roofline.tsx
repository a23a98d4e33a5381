/** The roofline plot: each kernel by its intensity, under what the device can do. */
import type { VNode } from "preact";
import { kernelRef, type Compile, type Kernel } from "../record";
import { bytesOf, peakOf, timeText, type Rates } from "../quantities";
import { linked } from "../linked";
import { Table } from "../ui";
import type { Page } from "./Pages";

const [WIDTH, HEIGHT, LEFT] = [480, 170, 84];
/** Powers of ten: operations a byte from the left edge on, and how far below the peak it goes. */
const [LOW, DECADES] = [-2, 5];

const share = (decades: number): number => Math.min(Math.max(decades / DECADES, 0), 1);
const xOf = (intensity: number): number => LEFT + share(Math.log10(intensity) - LOW) * (WIDTH - LEFT);
const yOf = (rate: number, peak: number): number =>
  HEIGHT * (1 - 0.9 * share(DECADES + Math.log10(rate / peak)));
const rateText = (rate: number, what = "FLOP"): string => {
  const [factor, unit] = rate < 1e12 ? [1e9, "G"] : [1e12, "T"];
  return `${Number((rate / Number(factor)).toPrecision(3))} ${unit}${what}/s`;
};

/** A page with the plot of kernels with their seconds, where there are any; views/plot.py has it too. */
export function rooflinePage(
  compile: Compile,
  rates: Rates | undefined,
  timed: [Kernel, number][],
  what: string,
): Page[] {
  const rows = timed.filter(([kernel]) => kernel.flops && bytesOf(kernel));
  return rates?.bandwidth && rows.length
    ? [{ label: "roofline", show: () => <Roofline {...{ compile, rates, rows, what }} /> }]
    : [];
}

function Roofline(props: { compile: Compile; rates: Rates; rows: [Kernel, number][]; what: string }): VNode {
  const { compile, rates, rows, what } = props;
  const roofs = new Map(rows.map(([kernel]) => [kernel.dtype, peakOf(rates, kernel)]));
  const peak = Math.max(...roofs.values());
  const powers = Array.from({ length: DECADES }, (_, index) => LOW + index);
  const points = rows.map(([kernel, seconds]) => {
    const intensity = (kernel.flops ?? 0) / bytesOf(kernel);
    return { kernel, seconds, intensity, rate: (kernel.flops ?? 0) / seconds };
  });
  return (
    <div class="dnx-scroll">
      <svg class="dnx-plot" viewBox={`0 0 ${WIDTH} ${HEIGHT + 30}`} width={WIDTH} role="img" aria-label={what}>
        <path d={`M${LEFT} 0V${HEIGHT}H${WIDTH}`} />
        <text x={LEFT + 8} y={HEIGHT - 8}>{rateText(rates.bandwidth, "B")}</text>
        <text x={LEFT} y={HEIGHT + 26}>operations a byte</text>
        {powers.map((power) => (
          <text x={xOf(10 ** power)} y={HEIGHT + 12}>{10 ** power}</text>
        ))}
        {[...roofs].map(([dtype, roof]) => {
          const y = yOf(roof, peak);
          const foot = yOf(10 ** LOW * rates.bandwidth, peak);
          return (
            <>
              <path d={`M${LEFT} ${foot}L${xOf(roof / rates.bandwidth)} ${y}H${WIDTH}`} />
              <text y={y + 4}>{rateText(roof)}</text>
              <text x={WIDTH - 60} y={y + 11}>{dtype}</text>
            </>
          );
        })}
        {points.map(({ kernel, intensity, rate }) => (
          <circle cx={xOf(intensity)} cy={yOf(rate, peak)} r="4" {...linked(kernelRef(compile, kernel))}>
            <title>{kernel.name}</title>
          </circle>
        ))}
      </svg>
      <Table
        label={what}
        columns={["kernel", "operations a byte", "rate", what, "dtype"]}
        rows={points.map(({ kernel, seconds, intensity, rate }) => ({
          cells: [kernel.name, Number(intensity.toPrecision(3)), rateText(rate), timeText(seconds), kernel.dtype],
          to: kernelRef(compile, kernel),
        }))}
      />
    </div>
  );
}
