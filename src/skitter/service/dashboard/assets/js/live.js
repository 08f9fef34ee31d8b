// A part of a page that is loaded, and loaded again: says so while it loads the first time, shows what went wrong,
// and keeps what it shows while the server is away.

import { fault, fill, loading, steadily } from "./dom.js";
import { Unreachable } from "./api.js";

export class Live {
  // load() -> value; show(value) -> nodes, when the value is another than before
  // without() is called when there is nothing to show
  constructor(element, load, show, without = () => {}) {
    this.element = element;
    this.load = load;
    this.show = show;
    this.without = without;
    this.turn = 0;
    this.hasContent = false;
    fill(element, loading());
  }

  async refresh() {
    const turn = ++this.turn;
    let value;
    try {
      value = await this.load();
    } catch (error) {
      if (turn === this.turn) this.failed(error);
      return;
    }
    if (turn !== this.turn) return; // a later question is under way: its answer counts
    const said = JSON.stringify(value);
    if (this.hasContent && said === this.said) return;
    steadily(() => fill(this.element, this.show(value)));
    this.said = said;
    this.hasContent = true;
  }

  failed(error) {
    if (error instanceof Unreachable) {
      if (!this.hasContent) fill(this.element, loading("waiting for the server"));
      return;
    }
    this.hasContent = false;
    this.without();
    fill(
      this.element,
      fault(error, () => {
        fill(this.element, loading());
        this.refresh();
      }),
    );
  }
}
