/** The symbolic sizes of one compile: where each comes from, what it may be, what asked for that. */
import type { VNode } from "preact";
import { hueOf, refOfFrame } from "../facts";
import { linked } from "../linked";
import { compileKey, type Compile, type Guard, type ShapeGuard, type Specialization, type Symbol } from "../record";
import { readable } from "../sources";
import type { GuardsPart } from "../store";
import { Chip, Empty, Loaded, Place } from "../ui";
import type { View } from "../view";

export function Shapes({ view, compile }: { view: View; compile: Compile }): VNode {
  const key = compileKey(compile);
  return (
    <Loaded
      part={view.store.guards(compile)}
      what="symbolic sizes"
      retry={() => view.store.retry("guards", key)}
    >
      {(part) => <Cards view={view} compile={key} part={part} />}
    </Loaded>
  );
}

function Cards({ view, compile, part }: { view: View; compile: string; part: GuardsPart }): VNode {
  const { symbols, shape_guards: shapes, specializations: constants } = part;
  if (!symbols.length && !shapes.length && !constants.length) {
    const others = Object.keys(view.sizes).filter((key) => view.sizes[key]?.symbols);
    return (
      <Empty>
        No symbolic sizes in {compile}: it fits the sizes of its own call alone.{" "}
        {others.length > 0 && "There are some in "}
        {others.map((key) => (
          <Chip key={key} to={[key, "compile", ""]} className={`dnx-hue${hueOf(view.record, key)}`}>
            {key}
          </Chip>
        ))}
      </Empty>
    );
  }
  const known = new Set(symbols.map((one) => one.name));
  const others = shapes.filter((one) => !namesIn(one.expr).some((name) => known.has(name)));
  return (
    <div class="dnx-scroll" tabIndex={0} role="group" aria-label={`symbolic sizes of ${compile}`}>
      {symbols.map((symbol) => (
        <Card
          key={symbol.name}
          symbol={symbol}
          shapes={shapes.filter((one) => namesIn(one.expr).includes(symbol.name))}
          constants={constants.filter((one) => one.symbol === symbol.name)}
          guards={guardsOn(symbol, part.guards)}
          compile={compile}
        />
      ))}
      {constants
        .filter((one) => !known.has(one.symbol))
        .map((one) => (
          <article class="dnx-card" key={one.symbol} {...linked(refOfFrame(one.frame))}>
            <header class="dnx-bar">
              <b>{one.symbol}</b> {one.sources.map(origin).join(", ")}
            </header>
            <Constant one={one} />
          </article>
        ))}
      {others.length > 0 && (
        <article class="dnx-card">
          <header class="dnx-bar">
            <b>other conditions</b>
          </header>
          {others.map((one, index) => (
            <Condition key={index} one={one} />
          ))}
        </article>
      )}
    </div>
  );
}

function Card(props: {
  symbol: Symbol;
  shapes: ShapeGuard[];
  constants: Specialization[];
  guards: [index: number, guard: Guard][];
  compile: string;
}): VNode {
  const { symbol, compile } = props;
  return (
    <article class="dnx-card" {...linked(refOfFrame(symbol.frame))}>
      <header class="dnx-bar">
        <b>{symbol.name}</b> {symbol.sources.map(origin).join(" = ")}
        {symbol.hint && <span class="dnx-dim">value seen {symbol.hint}</span>}
        {symbol.range && <span class="dnx-dim">{rangeText(symbol.range)}</span>}
        <Place frame={symbol.frame} />
      </header>
      {props.constants.map((one, index) => (
        <Constant key={index} one={one} />
      ))}
      {props.shapes.map((one, index) => (
        <Condition key={index} one={one} />
      ))}
      {props.guards.map(([index, guard]) => (
        <p key={index}>
          <Chip to={[compile, "guard", String(index)]}>guard</Chip> <code>{guard.code.join(" and ")}</code>
        </p>
      ))}
    </article>
  );
}

const Condition = ({ one }: { one: ShapeGuard }): VNode => (
  <p>
    <code>{one.expr}</code> <Place frame={one.frame} />
  </p>
);

const Constant = ({ one }: { one: Specialization }): VNode => (
  <p>
    <span class="dnx-warn">became the constant</span> <b>{one.value}</b>
    {one.reason && `: ${one.reason}`} <Place frame={one.frame} />
  </p>
);

const namesIn = (expression: string): string[] => expression.match(/[A-Za-z_]\w*/g) ?? [];

const guardsOn = (symbol: Symbol, guards: Guard[]): [number, Guard][] =>
  guards
    .map((guard, index): [number, Guard] => [index, guard])
    .filter(([, { kind, code }]) =>
      kind === "SHAPE_ENV" && code.some((one) => symbol.sources.some((source) => one.includes(source))),
    );

/** `dimension 0 of k` for the source of a size. */
export function origin(source: string): string {
  const found = /^(.+)\.(size|stride)\(\)\[(\d+)\]$/.exec(source);
  if (!found) return readable(source);
  return `${found[2] === "size" ? "dimension" : "stride"} ${found[3]} of ${readable(found[1] ?? "")}`;
}

/** `from 4`, `2 to 3`, `any value` for torch's `VR[4, int_oo]`. */
export function rangeText(range: string): string {
  const [low = "", high = ""] = range.replace(/^VR\[|\]$/g, "").split(", ");
  const [below, above] = [/-(int_)?oo/.test(low), /^(int_)?oo/.test(high)];
  if (below && above) return "any value";
  if (above) return `from ${low}`;
  return below ? `up to ${high}` : low === high ? low : `${low} to ${high}`;
}
