// The timeline: who held which resource when. A takeover, where another holder follows one that died,
// lapsed or was broken, has a mark.

import { changeFilter, toResource, toWorker } from './addresses.js';
import { empty, foreign, h, mark, reconcile, s, say } from './dom.js';
import { lanes, spans } from './spans.js';
import { brief, clock, day, duration, hue } from './words.js';

const WINDOWS = [5, 15, 60];
const MINUTE_MS = 60_000;
// How far one can zoom.
const SPAN_MIN_MS = 20_000;
const SPAN_MAX_MS = 7 * 86_400_000;
const STEPS_S = [5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400];
const ROWS_MAX = 40;
const ROWS_SMALL = 9;
const SPANS_MAX = 1_500;
const LANES_MAX = 6;
const BAR = 16;
const GAP = 3;
const AXIS = 22;
const GUTTER = 150;
const GUTTER_NARROW = 92;
const GUTTER_WIDE = 260;

export class Timeline {
  constructor(model, isSmall) {
    this.model = model;
    this.isSmall = isSmall;
    // The end is null where the timeline follows the present.
    this.spanMs = 5 * MINUTE_MS;
    this.end = null;
    this.drag = null;
    this.by = 'resource';
    const choice = (words, isChosen, choose) => {
      const button = h('button', { type: 'button', onclick: () => { choose(); this.showChoices(); this.show(this.search); } }, words);
      button.isChosen = isChosen;
      return button;
    };
    this.choices = [
      ...WINDOWS.map((minutes) => choice(`${minutes} min`, () => this.end === null && this.spanMs === minutes * MINUTE_MS, () => this.look(minutes * MINUTE_MS, null))),
      ...['resource', 'holder'].map((by) => choice(`by ${by}`, () => this.by === by, () => this.setBy(by))),
    ];
    const tool = (label, words, act) => h('button', { type: 'button', 'aria-label': label, title: label, onclick: act }, words);
    this.now = tool('Back to now', 'now', () => this.look(this.spanMs, null));
    this.tools = h('div', { class: 'choices', role: 'group', 'aria-label': 'Zoom and move', hidden: isSmall },
      tool('Earlier', '←', () => this.move(-0.5)), tool('Later', '→', () => this.move(0.5)),
      tool('Zoom out', '−', () => this.zoom(2)), tool('Zoom in', '+', () => this.zoom(0.5)), this.now);
    this.svg = s('svg', { class: 'timeline', role: 'group' },
      this.axis = s('g', { class: 'axis' }), this.rows = s('g'), this.bars = s('g'), this.marks = s('g'));
    this.tip = h('div', { class: 'tip', hidden: true });
    this.rest = h('p', { class: 'rest', hidden: true });
    this.takeovers = h('ul', { class: 'hidden', 'aria-label': 'Takeovers' });
    this.nothing = h('div', { hidden: true }, empty('No holds lately', 'Run a command under a lock:', 'tenure run deploy -- ./deploy.sh'));
    const id = isSmall ? 'timeline-small' : 'timeline-all';
    this.element = h('section', { class: 'panel timeline-panel', 'aria-labelledby': id },
      h('div', { class: 'panel-head' }, h('h2', { id }, 'Timeline'),
        this.range = h('span', { class: 'count' }),
        h('div', { class: 'choices', role: 'group', 'aria-label': 'Span of time' }, ...this.choices.slice(0, 3)), this.tools,
        h('div', { class: 'choices', role: 'group', 'aria-label': 'Rows' }, ...this.choices.slice(3))),
      h('div', { class: 'timeline-box' }, this.svg, this.tip), this.rest, this.nothing, this.takeovers,
      h('p', { class: 'key' },
        h('span', {}, h('i', { class: 'key-bar' }), 'held'),
        h('span', {}, h('i', { class: 'key-bar open' }), 'still held'),
        h('span', {}, h('i', { class: 'key-end' }), 'died, lapsed or broken'),
        h('span', {}, h('i', { class: 'key-takeover' }), 'taken over')));
    this.setUpPointer();
    if (!isSmall) this.svg.classList.add('movable');
    new ResizeObserver(() => this.draw()).observe(this.svg.parentElement);
    this.showChoices();
  }

  showChoices() {
    for (const button of this.choices) mark(button, 'aria-pressed', button.isChosen() ? 'true' : 'false');
    mark(this.now, 'aria-pressed', this.end === null ? 'true' : 'false');
  }

  /** Shows this much time, up to an end; null is the present. The view has it in its address. */
  look(spanMs, end) {
    const span = Math.round(Math.min(SPAN_MAX_MS, Math.max(SPAN_MIN_MS, spanMs)) / 1000) * 1000;
    const isNow = end === null || end >= this.model.now();
    if (this.isSmall) {
      this.spanMs = span;
      return;
    }
    changeFilter({ span: span === 5 * MINUTE_MS ? '' : String(span / 1000), end: isNow ? '' : new Date(Math.ceil(end / 1000) * 1000).toISOString().slice(0, 19) + 'Z' }, { isTyping: true });
  }

  setBy(by) {
    if (this.isSmall) this.by = by;
    else changeFilter({ by: by === 'resource' ? '' : by });
  }

  ends() { return this.end ?? this.model.now(); }

  /** Zooms by a factor around a time, or around the end while the timeline follows the present. */
  zoom(factor, around = this.end === null ? this.ends() : this.ends() - this.spanMs / 2) {
    const span = Math.min(SPAN_MAX_MS, Math.max(SPAN_MIN_MS, this.spanMs * factor));
    const share = (this.ends() - around) / this.spanMs;
    this.look(span, share === 0 && this.end === null ? null : around + share * span);
  }

  move(share) { this.look(this.spanMs, this.ends() + share * this.spanMs); }

  onKey(event) {
    if (this.isSmall) return;
    const acts = {
      ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25), '+': () => this.zoom(0.5), '=': () => this.zoom(0.5),
      '-': () => this.zoom(2), 0: () => this.look(this.spanMs, null),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }

  /** Dragging moves; the wheel with Ctrl zooms, so that it otherwise scrolls the page. */
  setUpPointer() {
    this.svg.addEventListener('pointerdown', (event) => {
      if (this.isSmall || event.button !== 0 || event.target.closest('a')) return;
      this.drag = { x: event.clientX, end: this.ends(), id: event.pointerId };
    });
    this.svg.addEventListener('pointermove', (event) => {
      this.point(event);
      const { drag } = this;
      if (!drag || drag.id !== event.pointerId) return;
      // A click that trembles is no drag.
      drag.isMoving ||= Math.abs(event.clientX - drag.x) >= 4;
      if (!drag.isMoving) return;
      this.svg.setPointerCapture(event.pointerId);
      this.tip.hidden = true;
      this.look(this.spanMs, drag.end - (event.clientX - drag.x) / this.scale);
    });
    // Of the window: a button that is let go elsewhere ends the drag too.
    for (const name of ['pointerup', 'pointercancel']) {
      window.addEventListener(name, () => {
        if (!this.drag) return;
        this.drag = null;
        this.draw();
      });
    }
    this.svg.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.svg.addEventListener('wheel', (event) => {
      if (this.isSmall || !event.ctrlKey) return;
      event.preventDefault();
      const x = event.clientX - this.svg.getBoundingClientRect().left;
      const around = this.ends() - this.spanMs + (x - this.gutter) / this.scale;
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, around);
    }, { passive: false });
  }

  /** Computes the rows from the events; `draw` only moves them. */
  show(search = '', filter = {}) {
    if (!this.isSmall) {
      const end = Date.parse(filter.end ?? '');
      this.spanMs = Math.min(SPAN_MAX_MS, Math.max(SPAN_MIN_MS, Number(filter.span) * 1000 || 5 * MINUTE_MS));
      this.end = Number.isNaN(end) ? null : end;
      this.by = filter.by === 'holder' ? 'holder' : 'resource';
    }
    this.showChoices();
    const from = this.ends() - this.spanMs;
    this.search = search;
    this.spans = spans(this.model.events, this.model.snapshot.locks, from, this.model.now());
    if (!this.isSmall && from < (this.model.events[0]?.time ?? 0)) this.model.loadOlderEvents();
    this.draw();
  }

  rowOf(span) {
    if (this.by === 'holder') return { key: span.holder, name: span.holder, kind: 'holder' };
    const isTask = span.resource.startsWith('task:');
    return isTask
      ? { key: `tasks\n${span.holder}`, name: span.holder, kind: 'tasks of' }
      : { key: span.resource, name: span.resource, kind: '' };
  }

  layout(from, to) {
    const rows = new Map();
    let recent = this.spans.filter((span) => (span.end ?? Infinity) >= from && span.start <= to);
    if (this.search) recent = recent.filter((span) => `${span.resource}\n${span.holder}\n${span.operation ?? ''}`.toLowerCase().includes(this.search));
    for (const span of recent.slice(-SPANS_MAX)) {
      const row = this.rowOf(span);
      if (!rows.has(row.key)) rows.set(row.key, { ...row, spans: [] });
      rows.get(row.key).spans.push(span);
    }
    const all = [...rows.values()].sort((one, other) => (one.kind > other.kind) - (one.kind < other.kind) || (one.name < other.name ? -1 : 1));
    const shown = all.slice(0, this.isSmall ? ROWS_SMALL : ROWS_MAX);
    let y = AXIS;
    for (const row of shown) {
      row.y = y;
      row.lanes = Math.min(LANES_MAX, lanes(row.spans));
      y += row.lanes * (BAR + GAP) + 6;
    }
    return { rows: shown, height: y + 2, hidden: all.length - shown.length };
  }

  draw() {
    const width = this.svg.parentElement.clientWidth;
    if (!this.spans || width === 0) return;
    const to = this.ends();
    const from = to - this.spanMs;
    const gutter = width < 560 ? GUTTER_NARROW : width > 1100 && !this.isSmall ? GUTTER_WIDE : GUTTER;
    const scale = (width - gutter - 10) / (to - from);
    Object.assign(this, { gutter, scale });
    const x = (time) => gutter + Math.min(to - from, Math.max(0, time - from)) * scale;
    const { rows, height, hidden } = this.layout(from, to);
    const isEmpty = rows.length === 0;
    this.nothing.hidden = !isEmpty;
    // What is being dragged stays under the pointer, so that it can be dragged back.
    this.svg.toggleAttribute('hidden', isEmpty && !this.drag);
    mark(this.svg, 'viewBox', `0 0 ${width} ${height}`);
    mark(this.svg, 'height', height);
    const until = this.end === null ? 'now' : clock(to);
    mark(this.svg, 'aria-label', `Holds of ${duration(this.spanMs / 1000)} until ${until}, ${rows.length} rows`);
    say(this.range, this.isSmall ? '' : `${this.spanMs > 12 * 3_600_000 ? `${day(from)}, ` : ''}${clock(from)} – ${until}`);
    const notes = [hidden > 0 && `and ${hidden} more rows`, this.model.hasGap && 'some events are missing'].filter(Boolean);
    this.rest.hidden = notes.length === 0;
    say(this.rest, notes.join('; '));
    this.drawAxis(from, to, x, gutter, height, width);
    this.drawRows(rows, gutter, width);
    this.drawBars(rows, x, this.model.now());
  }

  drawAxis(from, to, x, gutter, height, width) {
    const roomy = (width - gutter) / 90;
    const step = (STEPS_S.find((seconds) => (to - from) / (seconds * 1000) <= roomy) ?? 86_400) * 1000;
    const ticks = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at);
    const words = (at) => (step >= 43_200_000 ? day(at) : clock(at).slice(0, step < MINUTE_MS ? 8 : 5));
    reconcile(this.axis, ticks, (at) => `${at} ${step}`,
      (at) => s('g', {}, s('line', { y1: AXIS - 6 }), s('text', { y: 11 }, words(at))),
      (group, at) => {
        mark(group, 'transform', `translate(${x(at).toFixed(1)} 0)`);
        mark(group.firstChild, 'y2', height);
      });
  }

  drawRows(rows, gutter, width) {
    reconcile(this.rows, rows, (row) => row.key,
      (row) => s('g', { class: 'row' }, s('rect', { x: 0, rx: 4 }),
        s('a', { href: row.kind ? toWorker(row.name) : toResource(row.name) }, s('title', {}, row.name), s('text', { x: 8, dy: '0.35em' }))),
      (group, row) => {
        const [back, { lastChild: text }] = group.children;
        const tall = row.lanes * (BAR + GAP) + 3;
        mark(group, 'transform', `translate(0 ${row.y - 2})`);
        mark(back, 'width', width);
        mark(back, 'height', tall);
        mark(text, 'y', tall / 2);
        const isNarrow = gutter === GUTTER_NARROW;
        const name = isNarrow ? row.name.replace(/^(section|path):/, '') : row.kind === 'tasks of' ? `${row.name} · tasks` : row.name;
        say(text, fit(name, gutter - 16));
      });
  }

  drawBars(rows, x, now) {
    const bars = rows.flatMap((row) => row.spans.filter((span) => span.lane < LANES_MAX).map((span) => ({ span, row })));
    const top = ({ span, row }) => row.y + span.lane * (BAR + GAP);
    reconcile(this.bars, bars, ({ span }) => span.key,
      ({ span }) => s('g', {}, s('rect', { height: BAR, rx: 3, class: `hue-${hue(span.holder)}` }), s('text', { y: BAR / 2, x: 6, dy: '0.35em' })),
      (group, bar) => {
        const { span } = bar;
        const [rect, text] = group.children;
        const left = x(span.start);
        const wide = Math.max(2.5, x(span.end ?? now) - left);
        group.span = span;
        mark(group, 'transform', `translate(${left.toFixed(1)} ${top(bar)})`);
        mark(rect, 'width', wide.toFixed(1));
        mark(group, 'class', `span ${span.how ?? 'open'}`);
        const label = this.by === 'resource' && !span.resource.startsWith('task:') ? span.holder : span.operation && span.resource.startsWith('task:') ? span.operation : span.resource;
        const indent = span.takeover ? 11 : 6;
        mark(text, 'x', indent);
        say(text, wide > 40 + indent ? fit(label, wide - indent - 6) : '');
      });
    this.drawMarks(bars, x, top);
  }

  drawMarks(bars, x, top) {
    const cut = bars.filter(({ span }) => ['died', 'lapsed', 'broken'].includes(span.how));
    const taken = bars.filter(({ span }) => span.takeover);
    const marks = [...cut.map((bar) => ({ ...bar, sort: 'cut', at: bar.span.end })), ...taken.map((bar) => ({ ...bar, sort: 'takeover', at: bar.span.start }))];
    reconcile(this.marks, marks, ({ span, sort }) => `${sort}\n${span.key}`,
      ({ sort }) => (sort === 'cut'
        ? s('rect', { class: 'cut', x: -1.5, y: -2, width: 3, height: BAR + 4, rx: 1.5 })
        : s('path', { class: 'takeover', d: `M0 ${BAR / 2 - 6}l6 6l-6 6l-6 -6z` })),
      (element, bar) => mark(element, 'transform', `translate(${x(bar.at).toFixed(1)} ${top(bar)})`));
    reconcile(this.takeovers, taken.slice(-20), ({ span }) => span.key,
      ({ span }) => h('li', {}, foreign(tookOver(span))), () => {});
  }

  point(event) {
    const span = event.target.closest?.('.span')?.span;
    this.tip.hidden = !span;
    if (!span) return;
    const end = span.end ?? this.model.now();
    this.tip.replaceChildren(
      h('b', {}, foreign(brief(span.resource, 80))),
      h('span', {}, foreign(brief(span.holder, 60)), ` · token ${span.token}`),
      span.operation ? h('span', {}, foreign(brief(span.operation, 120))) : '',
      h('span', {}, `${clock(span.start)} – ${span.end ? clock(span.end) : 'now'} · ${duration((end - span.start) / 1000)}${span.how && span.how !== 'released' ? ` · ${span.how}` : ''}`),
      span.reason ? h('span', {}, foreign(brief(span.by ? `${span.by}: ${span.reason}` : span.reason, 160))) : '',
      span.takeover ? h('span', { class: 'warm' }, foreign(tookOver(span))) : '');
    const box = this.svg.parentElement.getBoundingClientRect();
    const left = Math.min(event.clientX - box.left + 12, box.width - this.tip.offsetWidth - 4);
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${event.clientY - box.top + 14}px`;
  }
}

function tookOver(span) {
  const { holder, how } = span.takeover;
  return `${brief(span.holder, 60)} took over ${brief(span.resource, 60)}: ${brief(holder, 60)} ${how === 'died' ? 'died' : how === 'lapsed' ? 'lost its lease' : 'was broken'}`;
}

/** Cuts a text to roughly this many pixels. */
function fit(text, pixels) {
  const most = Math.floor(pixels / 6.4);
  return text.length <= most ? text : most < 3 ? '' : `${brief(text, most - 1).replace(/…$/, '')}…`;
}
