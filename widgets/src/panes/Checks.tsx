/** Compiled calls that were repeated eagerly (`--check`): which agree, and all that differs. */
import type { VNode } from "preact";
import { compileOf, frameAt, hueOf } from "../facts";
import { kernelRef, type Check, type Mismatch } from "../record";
import { plural } from "../describe";
import { Chip, Empty, Place } from "../ui";
import type { View } from "../view";

export function Checks({ view }: { view: View }): VNode {
  const { checks } = view.record;
  if (!checks.length) return <Empty>No call was compared with eager: run the cell with --check.</Empty>;
  return (
    <div class="dnx-scroll" tabIndex={0} role="group" aria-label="checks against eager">
      {checks.map((check, index) => (
        <Card key={index} view={view} check={check} />
      ))}
    </div>
  );
}

const STYLES: Record<string, string> = { differs: "dnx-err", "not repeated": "dnx-warn" };

function Card({ view, check }: { view: View; check: Check }): VNode {
  const compared = check.gradients ? "results and gradients" : "results";
  return (
    <article class="dnx-card">
      <header class="dnx-bar">
        <b class={STYLES[check.status] ?? ""}>{check.status}</b> <code>{check.name}</code>
        {check.line !== null && <Place frame={frameAt(check.line)} />}
        {check.compile && (
          <Chip
            to={[check.compile, "compile", ""]}
            className={`dnx-hue${hueOf(view.record, check.compile)}`}
          >
            {check.compile}
          </Chip>
        )}
        <span class="dnx-dim">
          {check.status === "not repeated" ? check.reason : `${compared} of backend ${check.backend} with eager's`}
          {check.count > 1 && `, ${plural(check.count, "call")}`}
          {check.random && ", with eager's random numbers"}
        </span>
      </header>
      {check.stage && (
        <p>
          first at {check.stage === "entry" ? "the cache entry alone" : <>the stage <b>{check.stage}</b></>}
        </p>
      )}
      {check.mismatches.length > 0 && (
        <div class="dnx-wide" tabIndex={0} role="group" aria-label={`what differs in ${check.name}`}>
          <table>
            <thead>
              <tr>
                {["what", "in its", "eager", "compiled", "how far", "made by"].map((title) => (
                  <th key={title}>{title}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {check.mismatches.map((one, index) => (
                <Row key={index} view={view} check={check} one={one} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </article>
  );
}

function Row({ view, check, one }: { view: View; check: Check; one: Mismatch }): VNode {
  const compile = compileOf(view.record, check.compile);
  const kernel = compile?.kernels.find((item) => item.name === one.kernel);
  return (
    <tr>
      <th scope="row">
        {one.what} {one.what !== one.name && <code>{one.name}</code>}
      </th>
      <td>{one.kind}</td>
      <td>
        <code>{one.eager}</code>
        {one.closer === "eager" && <span class="dnx-dim"> closer to float64</span>}
      </td>
      <td>
        <code>{one.compiled}</code>
      </td>
      <td>
        {one.of > 0 && `${one.count} of ${plural(one.of, "element")}`}
        {one.error !== null && `, at most ${one.error.toPrecision(3)}`}
        {one.index.length > 0 && ` at [${one.index.join(", ")}]`}
      </td>
      <td>
        <Place frame={one.frame} />{" "}
        {compile && kernel ? <Chip to={kernelRef(compile, kernel)}>{kernel.name}</Chip> : one.kernel}
      </td>
    </tr>
  );
}
