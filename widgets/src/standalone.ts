/** A page of its own: the record stands in it as JSON, there is no server. */
import { mount } from "./app";
import type { CellRecord } from "./record";
import { Store, wholeSource } from "./store";

const RECORD = "dynamo-nb-record";
const PLACE = "dynamo-nb-explorer";

/** Mount the explorer where a page asks for it; do nothing anywhere else. */
export function openPage(document: Document): void {
  const place = document.getElementById(PLACE);
  const text = document.getElementById(RECORD)?.textContent;
  if (!place || !text || place.dataset["open"]) return;
  place.dataset["open"] = "yes";
  place.classList.add("dnx");
  const record = JSON.parse(text) as CellRecord;
  mount(place, new Store(wholeSource(record)), { headline: place.dataset["headline"] ?? "" });
  document.documentElement.classList.add("dnx-page");
}
