/** Bytes, times and rates in words, and what a device does at best. */
import type { Kernel, Machine, Target } from "./record";

/** A number of bytes: `640 B`, `8.4 MB`; nothing for none. */
export function sizeText(size: number): string {
  for (const [unit, factor] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const) {
    if (size >= factor) return `${(size / factor).toFixed(1)} ${unit}`;
  }
  return size ? `${size} B` : "";
}

/** A time with three digits: `1.23 ms`. */
export function timeText(seconds: number): string {
  for (const [unit, factor] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]] as const) {
    if (seconds >= factor) return `${Number((seconds / factor).toPrecision(3))} ${unit}`;
  }
  return `${Number((seconds / 1e-9).toPrecision(3))} ns`;
}

export const sum = (sizes: Record<string, number>): number =>
  Object.values(sizes).reduce((total, size) => total + size, 0);

export const bytesOf = (kernel: Kernel): number => sum(kernel.reads) + sum(kernel.writes);

export type Rates = Pick<Machine, "bandwidth" | "flops">;

/** The rates of a GPU that is not there: those of its data sheet. */
export const ratesOf = (target: Target): Rates => ({
  bandwidth: 0,
  flops: {},
  ...(target.properties as Partial<Rates>),
});

/** Operations a second: without a rate for the kernel's dtype, that for float32. */
export const peakOf = ({ flops }: Rates, { dtype }: Kernel): number =>
  flops[dtype] || flops["float32"] || 0;

export interface Floor {
  seconds: number;
  bound: string;
  /** Whether the kernel's operations are known. */
  whole: boolean;
}

export const floorText = ({ seconds, bound, whole }: Floor): string =>
  `${timeText(seconds)}, bound by ${bound}${whole ? "" : " alone (its operations are not known)"}`;

/** The least seconds that a kernel takes, and what bounds it: views/roofline.py has the same. */
export function floorOf(rates: Rates | undefined, kernel: Kernel): Floor | null {
  const bytes = bytesOf(kernel);
  if (!rates?.bandwidth || !bytes) return null;
  const peak = peakOf(rates, kernel);
  const memory = bytes / rates.bandwidth;
  const arithmetic = peak ? (kernel.flops ?? 0) / peak : 0;
  const bound = memory >= arithmetic ? "memory" : "arithmetic";
  return { seconds: Math.max(memory, arithmetic), bound, whole: kernel.flops !== null };
}

/** Why a kernel is faster than its floor, by what bounds it: views/roofline.py has the same. */
const FASTER: Record<string, string> = {
  memory: "faster than memory allows: the data stays in cache",
  arithmetic: "faster than the arithmetic measured on this machine",
};

/** How near a kernel comes to its floor. */
export function shareText(floor: Pick<Floor, "seconds" | "bound">, seconds: number): string {
  const share = Math.round((100 * floor.seconds) / seconds);
  return (share > 100 && FASTER[floor.bound]) || `${share}% of what is possible`;
}
