// The timeline: who held which resource when. A takeover, where another holder follows one that died,
// lapsed or was broken, has a mark.

import { empty, foreign, h, mark, reconcile, s, say } from './dom.js';
import { lanes, spans } from './spans.js';
import { brief, clock, duration, hue } from './words.js';

const WINDOWS = [5, 15, 60];
const ROWS_MAX = 40;
const ROWS_SMALL = 9;
const SPANS_MAX = 1_500;
const LANES_MAX = 6;
const BAR = 16;
const GAP = 3;
const AXIS = 22;
const GUTTER = 150;
const GUTTER_NARROW = 92;

export class Timeline {
  constructor(model, isSmall) {
    this.model = model;
    this.isSmall = isSmall;
    this.minutes = 5;
    this.by = 'resource';
    const choice = (words, isChosen, choose) => {
      const button = h('button', { type: 'button', onclick: () => { choose(); this.showChoices(); this.show(); } }, words);
      button.isChosen = isChosen;
      return button;
    };
    this.choices = [
      ...WINDOWS.map((minutes) => choice(`${minutes} min`, () => this.minutes === minutes, () => { this.minutes = minutes; })),
      ...['resource', 'holder'].map((by) => choice(`by ${by}`, () => this.by === by, () => { this.by = by; })),
    ];
    this.svg = s('svg', { class: 'timeline', role: 'img' },
      this.axis = s('g', { class: 'axis' }), this.rows = s('g'), this.bars = s('g'), this.marks = s('g'));
    this.tip = h('div', { class: 'tip', hidden: true });
    this.rest = h('p', { class: 'rest', hidden: true });
    this.takeovers = h('ul', { class: 'hidden', 'aria-label': 'Takeovers' });
    this.nothing = h('div', { hidden: true }, empty('No holds lately', 'Run a command under a lock:', 'tenure run deploy -- ./deploy.sh'));
    const id = isSmall ? 'timeline-small' : 'timeline-all';
    this.element = h('section', { class: 'panel timeline-panel', 'aria-labelledby': id },
      h('div', { class: 'panel-head' }, h('h2', { id }, 'Timeline'),
        h('div', { class: 'choices', role: 'group', 'aria-label': 'Span of time' }, ...this.choices.slice(0, 3)),
        h('div', { class: 'choices', role: 'group', 'aria-label': 'Rows' }, ...this.choices.slice(3))),
      h('div', { class: 'timeline-box' }, this.svg, this.tip), this.rest, this.nothing, this.takeovers,
      h('p', { class: 'key' },
        h('span', {}, h('i', { class: 'key-bar' }), 'held'),
        h('span', {}, h('i', { class: 'key-bar open' }), 'still held'),
        h('span', {}, h('i', { class: 'key-end' }), 'died, lapsed or broken'),
        h('span', {}, h('i', { class: 'key-takeover' }), 'taken over')));
    this.svg.addEventListener('pointermove', (event) => this.point(event));
    this.svg.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    new ResizeObserver(() => this.draw()).observe(this.svg.parentElement);
    this.showChoices();
  }

  showChoices() {
    for (const button of this.choices) mark(button, 'aria-pressed', button.isChosen() ? 'true' : 'false');
  }

  /** Computes the rows from the events; `draw` only moves them. */
  show(search = '') {
    const since = this.model.now() - 60 * 60_000;
    this.search = search;
    this.spans = spans(this.model.events, this.model.snapshot.locks, since, this.model.now());
    this.draw();
  }

  rowOf(span) {
    if (this.by === 'holder') return { key: span.holder, name: span.holder, kind: 'holder' };
    const isTask = span.resource.startsWith('task:');
    return isTask
      ? { key: `tasks\n${span.holder}`, name: span.holder, kind: 'tasks of' }
      : { key: span.resource, name: span.resource, kind: '' };
  }

  layout(from) {
    const rows = new Map();
    let recent = this.spans.filter((span) => (span.end ?? Infinity) >= from);
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
    const now = this.model.now();
    const from = now - this.minutes * 60_000;
    const gutter = width < 560 ? GUTTER_NARROW : GUTTER;
    const scale = (width - gutter - 10) / (now - from);
    const x = (time) => gutter + Math.max(0, time - from) * scale;
    const { rows, height, hidden } = this.layout(from);
    const isEmpty = rows.length === 0;
    this.nothing.hidden = !isEmpty;
    this.svg.toggleAttribute('hidden', isEmpty);
    mark(this.svg, 'viewBox', `0 0 ${width} ${height}`);
    mark(this.svg, 'height', height);
    mark(this.svg, 'aria-label', `Holds of the last ${this.minutes} minutes, ${rows.length} rows`);
    this.rest.hidden = hidden === 0;
    say(this.rest, `and ${hidden} more rows`);
    this.drawAxis(from, now, x, gutter, height, width);
    this.drawRows(rows, gutter, width);
    this.drawBars(rows, x, now);
  }

  drawAxis(from, now, x, gutter, height, width) {
    const roomy = (width - gutter) / 90;
    const step = [30, 60, 120, 300, 600, 900, 1800].map((seconds) => seconds * 1000).find((ms) => (now - from) / ms <= roomy) ?? 3_600_000;
    const ticks = [];
    for (let at = Math.ceil(from / step) * step; at <= now; at += step) ticks.push(at);
    reconcile(this.axis, ticks, (at) => at,
      (at) => s('g', {}, s('line', { y1: AXIS - 6 }), s('text', { y: 11 }, clock(at).slice(0, step < 60_000 ? 8 : 5))),
      (group, at) => {
        mark(group, 'transform', `translate(${x(at).toFixed(1)} 0)`);
        mark(group.firstChild, 'y2', height);
      });
  }

  drawRows(rows, gutter, width) {
    reconcile(this.rows, rows, (row) => row.key,
      (row) => s('g', { class: 'row' }, s('title', {}, row.name), s('rect', { x: 0, rx: 4 }), s('text', { x: 8, dy: '0.35em' })),
      (group, row) => {
        const [, back, text] = group.children;
        const tall = row.lanes * (BAR + GAP) + 3;
        mark(group, 'transform', `translate(0 ${row.y - 2})`);
        mark(back, 'width', width);
        mark(back, 'height', tall);
        mark(text, 'y', tall / 2);
        const isNarrow = gutter < GUTTER;
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
      span.reason ? h('span', {}, foreign(brief(`${span.by ?? ''}: ${span.reason}`, 160))) : '',
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
