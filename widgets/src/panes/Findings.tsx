import type { VNode } from "preact";
import { frameAt } from "../facts";
import { linked } from "../linked";
import { lineRef, CELL, type Finding } from "../record";
import type { Ref } from "../selection";
import { Copy, Place } from "../ui";
import type { View } from "../view";

const STYLES: Record<string, string> = { error: "err", warning: "warn" };

/** The findings, worst first: each one a click away from its line. */
export function Findings({ view }: { view: View }): VNode {
  const { findings, error } = view.record;
  return (
    <section class="dnx-findings" aria-label="findings" tabIndex={findings.length > 3 ? 0 : -1}>
      {error && (
        <p class="dnx-raised dnx-err">
          <b>raised</b> <code>{error.type}</code>{" "}
          {error.line !== null && <Place frame={frameAt(error.line)} />} {error.message}
        </p>
      )}
      {findings.length > 0 && (
        <ul>
          {findings.map((finding, index) => (
            <Item key={index} finding={finding} />
          ))}
        </ul>
      )}
      {findings.length === 0 && !error && <p class="dnx-dim">No findings.</p>}
    </section>
  );
}

function Item({ finding }: { finding: Finding }): VNode {
  const ref = refOf(finding);
  const frame = finding.line === null ? finding.frame : frameAt(finding.line);
  return (
    <li class={`dnx-finding dnx-${STYLES[finding.severity] ?? "info"}`} {...linked(ref)}>
      <span class="dnx-severity" title={finding.severity} aria-label={finding.severity} role="img" />
      <span class="dnx-finding-code">{finding.code}</span>
      <span>
        <Place frame={frame} {...(ref ? { ref_: ref } : {})} />
        {finding.count > 1 && <span class="dnx-count">×{finding.count}</span>}
      </span>
      <span class="dnx-message" title={`${finding.message}\n${finding.advice}`}>
        <Prose text={finding.message} />
        {finding.advice && (
          <span class="dnx-advice">
            <Prose text={finding.advice} />
          </span>
        )}
      </span>
    </li>
  );
}

/** What a finding stands for: the first thing that it names, else its line. */
function refOf(finding: Finding): Ref | null {
  if (finding.refs[0]) return finding.refs[0];
  if (finding.line !== null) return lineRef(CELL, finding.line);
  return finding.frame && lineRef(finding.frame.file, finding.frame.line);
}

/** Text with code in backticks; a line of code that could be pasted has a copy button. */
export function Prose({ text }: { text: string }): VNode {
  return (
    <>
      {text.split("`").map((piece, index) => {
        if (index % 2 === 0) return piece;
        const pasted = /^\S+ = |^export /.test(piece);
        return (
          <span key={index} class="dnx-inline">
            <code>{piece}</code>
            {pasted && <Copy text={() => piece} title={`Copy ${piece}`} />}
          </span>
        );
      })}
    </>
  );
}
