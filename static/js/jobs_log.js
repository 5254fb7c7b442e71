/* The log of a job, live: appends what is written, moves through all of it, and never holds more than a window of it.
   Its texts come from machines: they are put in as text. */
const POLL_MS = 2000;
const SLOW_MS = 10000; // after a failure, and where nothing has been written for a while
const QUIET_ROUNDS = 30;
const CATCH_UP_MS = 100;
const MOST_SHOWN = 2000;
const JUMP = 1500; // a log that ran ahead so far is shown from its end again
const CONTEXT = 60; // lines before the one that a link leads to
const TYPING_MS = 300;
const AT_END_PX = 24;

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_all, name) => values[name]);
const figure = new Intl.NumberFormat(document.documentElement.lang || "en");

class Log {
  constructor(panel) {
    this.panel = panel;
    this.tail = panel.querySelector(".tail");
    this.list = panel.querySelector("ol");
    this.form = panel.querySelector("form");
    this.follow = panel.querySelector("[data-log-follow]");
    this.older = panel.querySelector("[data-log-older]");
    this.newer = panel.querySelector("[data-log-newer]");
    this.none = panel.querySelector("[data-log-none]");
    this.words = panel.querySelector("[data-log-words]").dataset;
    this.address = this.tail.dataset.lines;
    this.count = Number(panel.dataset.count);
    this.reached = this.count;
    this.first = Number(panel.dataset.first);
    this.more = panel.dataset.more === "1";
    this.goesOn = "goesOn" in panel.dataset;
    this.quiet = 0;
    this.round = 0;
    this.pending = 0;
    this.#listen();
    this.#show();
    this.#again(POLL_MS);
    this.#goToAddress();
  }

  get follows() {
    return this.goesOn && (this.follow?.checked ?? false);
  }

  get filter() {
    const query = new URLSearchParams();
    const words = this.form.elements.q.value.trim();
    if (words) query.set("q", words);
    if (this.form.elements.warnings.checked) query.set("warnings", "1");
    return query;
  }

  get isFiltered() {
    return [...this.filter].length > 0;
  }

  #listen() {
    this.panel.querySelectorAll("[data-log-show]").forEach((button) => button.remove());
    this.panel.querySelector("[data-log-live]")?.removeAttribute("hidden");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.reload();
    });
    this.form.elements.q.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.reload(), TYPING_MS);
    });
    this.form.elements.warnings.addEventListener("change", () => this.reload());
    this.form.elements.rank?.addEventListener("change", ({ target }) => this.#change(target.selectedOptions[0].dataset));
    this.follow?.addEventListener("change", () => this.follow.checked && this.#resume());
    this.older.addEventListener("click", () => this.#loadOlder());
    this.newer.addEventListener("click", () => this.#resume());
    this.tail.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    addEventListener("hashchange", () => this.#goToAddress());
    document.addEventListener("visibilitychange", () => !document.hidden && this.#again(0));
    document.addEventListener("click", (event) => {
      const link = event.target.closest('a[href^="#L"]');
      if (!link || !/^#L\d+$/.test(link.getAttribute("href"))) return;
      event.preventDefault();
      history.replaceState(null, "", link.getAttribute("href"));
      this.goTo(Number(link.getAttribute("href").slice(2)));
    });
  }

  async #ask(more) {
    const address = new URL(this.address, location.href);
    for (const [name, value] of [...(more.plain ? [] : this.filter), ...Object.entries(more.query ?? {})]) address.searchParams.set(name, value);
    const response = await fetch(address, { headers: { Accept: "application/json" } });
    if (!response.ok || response.redirected) throw new Error(String(response.status));
    return response.json();
  }

  /** Answers of questions that were overtaken by another are dropped. */
  async #fetch(more, take) {
    const round = ++this.round;
    this.pending += 1;
    try {
      const answer = await this.#ask(more);
      if (round !== this.round) return;
      this.count = answer.count;
      this.goesOn = this.goesOn && !(answer.ends && answer.reached >= answer.count);
      this.lost = false;
      take(answer);
      this.#show();
    } catch {
      this.lost = true;
      if (round === this.round) this.#say(this.words.lost);
    } finally {
      this.pending -= 1;
    }
  }

  /** From the end again: with other words, of another machine, or because it ran ahead. */
  reload() {
    return this.#fetch({}, (answer) => this.#replace(answer, true));
  }

  #replace({ lines, reached, more, count }, isEnd) {
    this.list.replaceChildren(...lines.flatMap((line) => this.#items(line)));
    this.first = reached;
    this.more = more;
    this.reached = count;
    if (isEnd) this.#toEnd();
  }

  #change({ lines, file }) {
    this.address = lines;
    this.panel.querySelector("[data-log-file]").href = file;
    this.reload();
  }

  #resume() {
    if (this.follow) this.follow.checked = true;
    this.quiet = 0;
    this.reload();
  }

  #pause() {
    if (this.follow?.checked) this.follow.checked = false;
    this.#show();
  }

  #again(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#poll(), wait);
  }

  async #poll() {
    if (!this.goesOn) return;
    if (document.hidden) return;
    if (this.pending) {
      this.#again(POLL_MS); // what somebody asked for must not be overtaken by looking for what is new
      return;
    }
    const before = this.count;
    if (this.follows) await this.#fetch({ query: { after: this.reached } }, (answer) => this.#append(answer));
    else await this.#fetch({ query: { peek: 1 } }, () => {});
    this.quiet = this.count === before ? this.quiet + 1 : 0;
    const behind = this.follows && this.count > this.reached;
    this.#again(this.lost || this.quiet > QUIET_ROUNDS ? SLOW_MS : behind ? CATCH_UP_MS : POLL_MS);
  }

  #append({ lines, reached, more, count }) {
    if (more && count - reached > JUMP) {
      this.reload();
      return;
    }
    const wasAtEnd = this.#isAtEnd();
    this.list.append(...lines.flatMap((line) => this.#items(line)));
    this.reached = Math.max(this.reached, reached);
    this.#trim("first");
    if (wasAtEnd && lines.length) this.#toEnd();
  }

  #loadOlder() {
    return this.#fetch({ query: { before: this.first } }, ({ lines, reached, more }) => {
      this.list.prepend(...lines.flatMap((line) => this.#items(line)));
      this.first = reached;
      this.more = more;
      this.#trim("last");
    });
  }

  #goToAddress() {
    if (/^#L\d+$/.test(location.hash)) this.goTo(Number(location.hash.slice(2)));
  }

  /** To one line, wherever in the log it is, with what stands around it. */
  goTo(number) {
    this.#pause();
    if (this.list.querySelector(`#L${number}`)) {
      this.#point(number);
      return Promise.resolve();
    }
    this.form.elements.q.value = "";
    this.form.elements.warnings.checked = false;
    const after = Math.max(0, number - CONTEXT);
    return this.#fetch({ plain: true, query: { after } }, ({ lines, reached }) => {
      this.list.replaceChildren(...lines.flatMap((line) => this.#items(line)));
      this.first = lines[0]?.number ?? after + 1;
      this.more = this.first > 1;
      this.reached = reached;
      this.#point(number);
    });
  }

  #point(number) {
    this.list.querySelector(".here")?.classList.remove("here");
    const line = this.list.querySelector(`#L${number}`);
    if (!line) return;
    line.classList.add("here");
    line.scrollIntoView({ block: "center" });
    line.querySelector("a").focus({ preventScroll: true });
  }

  #trim(side) {
    let over = this.list.childElementCount - MOST_SHOWN;
    if (over <= 0) return;
    while (over-- > 0) (side === "first" ? this.list.firstElementChild : this.list.lastElementChild).remove();
    const ends = [...this.list.querySelectorAll("[id]")];
    if (side === "first") {
      this.first = Number(ends[0].id.slice(1));
      this.more = true;
    } else this.reached = Number(ends.at(-1).id.slice(1));
  }

  #items({ number, text, warns, gap }) {
    const item = document.createElement("li");
    item.id = `L${number}`;
    if (warns) item.dataset.l = "warn";
    const link = document.createElement("a");
    link.href = `#L${number}`;
    link.tabIndex = -1;
    link.textContent = String(number);
    const said = document.createElement("span");
    said.append(...this.#marked(text));
    item.append(link, said);
    return gap ? [gapItem(gap), item] : [item];
  }

  #marked(text) {
    const words = this.form.elements.q.value.trim().toLowerCase();
    if (!words) return [text];
    const parts = [];
    const lower = text.toLowerCase();
    let from = 0;
    // Letters whose lower case is longer would shift what is marked: such lines are shown without marks.
    for (let at = lower.length === text.length ? lower.indexOf(words) : -1; at >= 0; at = lower.indexOf(words, from)) {
      const mark = document.createElement("mark");
      mark.textContent = text.slice(at, at + words.length);
      parts.push(text.slice(from, at), mark);
      from = at + words.length;
    }
    return [...parts, text.slice(from)];
  }

  #isAtEnd() {
    return Math.abs(this.tail.scrollTop) < AT_END_PX;
  }

  /** The list grows from below: its end is where nothing is scrolled. */
  #toEnd() {
    this.tail.scrollTop = 0;
  }

  #scrolled() {
    if (!this.#isAtEnd()) {
      if (this.follows) this.#pause();
      const { scrollTop, scrollHeight, clientHeight } = this.tail;
      if (this.more && !this.pending && scrollHeight - clientHeight + scrollTop < AT_END_PX) this.#loadOlder();
    }
  }

  #say(text) {
    const place = this.panel.querySelector("[data-log-says]");
    if (place.textContent !== text) place.textContent = text;
  }

  #show() {
    const shown = this.list.querySelectorAll("[id]").length;
    this.older.hidden = !this.more;
    this.none.hidden = shown > 0;
    this.none.textContent = this.isFiltered ? this.none.dataset.noHit : this.none.dataset.empty;
    const behind = this.count - this.reached;
    this.newer.hidden = this.follows || behind <= 0;
    if (behind > 0) this.newer.textContent = fill(this.words.new, { n: figure.format(behind) });
    const values = { n: figure.format(shown), line: figure.format(this.first) };
    this.#say(this.isFiltered && this.more ? fill(this.words.of, values) : shown ? fill(this.words.lines, values) : "");
  }
}

function gapItem(text) {
  const item = document.createElement("li");
  item.dataset.l = "gap";
  const said = document.createElement("span");
  said.textContent = text;
  item.append(document.createElement("span"), said);
  return item;
}

const panel = document.querySelector("[data-log]");
if (panel) new Log(panel);
