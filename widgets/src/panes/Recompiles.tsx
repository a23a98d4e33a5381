/** Why it was compiled again: a card for each compile that found an entry which did not fit. */
import type { VNode } from "preact";
import { frameAt, hueOf } from "../facts";
import { linked } from "../linked";
import { compileKey, type Compile, type RecompileReason } from "../record";
import type { Ref } from "../selection";
import { Chip, Empty, Place } from "../ui";
import type { View } from "../view";
import { Change } from "./Guards";

export function Recompiles({ view }: { view: View }): VNode {
  const again = view.record.compiles.filter((one) => one.recompile_reasons.length > 0);
  if (!again.length) return <Empty>Nothing was compiled twice.</Empty>;
  return (
    <div class="dnx-scroll" tabIndex={0} role="group" aria-label="recompiles">
      {again.map((compile) => (
        <Card key={compileKey(compile)} view={view} compile={compile} />
      ))}
    </div>
  );
}

function Card({ view, compile }: { view: View; compile: Compile }): VNode {
  const key = compileKey(compile);
  const [main, ...others] = compile.recompile_reasons; // first the entry that nearly fitted
  if (!main) return <></>;
  const ref: Ref = [key, "recompile", "0"];
  return (
    <article class="dnx-card" {...linked(ref)}>
      <header class="dnx-bar">
        <Chip to={ref} className={`dnx-hue${hueOf(view.record, key)}`}>
          {key}
        </Chip>
        <b>{compile.resume_of || compile.name}</b>
        <span class="dnx-dim">
          {main.call_line !== null && (
            <>
              called at <Place frame={frameAt(main.call_line)} />,{" "}
            </>
          )}
          <Chip to={[main.entry, "compile", ""]}>{main.entry}</Chip> did not fit
        </span>
      </header>
      <Reason reason={main} />
      {others.length > 0 && (
        <details>
          <summary>{others.length} more failing guards</summary>
          {others.map((reason, index) => (
            <div key={index}>
              <span class="dnx-dim">{reason.entry}</span> <Reason reason={reason} />
            </div>
          ))}
        </details>
      )}
    </article>
  );
}

const Reason = ({ reason }: { reason: RecompileReason }): VNode => (
  <p>
    <Change reason={reason} />
    {reason.guard && (
      <span class="dnx-dim">
        {" "}
        guard <code>{reason.guard}</code>
      </span>
    )}{" "}
    <Place frame={reason.frame} />
  </p>
);
