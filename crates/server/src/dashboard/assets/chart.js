// A small chart over time: bars for counts, lines for durations.

import { fill, h, s, say } from './dom.js';
import { clock, day } from './words.js';

const WIDTH = 320;
const HEIGHT = 84;

/** A rounded number at or above this one, for the upper end of the axis. */
function ceiling(number) {
  if (number <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].map((step) => step * size).find((step) => step >= number);
}

/** The newest value; the last time is not over yet. */
const latest = (values) => values.slice(0, -1).findLast((value) => value !== null) ?? null;

export class Chart {
  /** @param kind `bars` or `lines`; @param format how a value is written. */
  constructor(title, kind, format) {
    this.title = title;
    this.kind = kind;
    this.format = format;
    this.now = h('span', { class: 'chart-now' });
    this.legend = h('p', { class: 'chart-legend' });
    this.top = h('span', {});
    this.ends = h('p', { class: 'chart-ends' }, h('span', {}), this.says = h('span', { class: 'chart-says' }), h('span', {}));
    this.plot = s('g');
    this.cursor = s('line', { class: 'cursor', y1: 0, y2: HEIGHT, hidden: '' });
    this.svg = s('svg', { class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': title }, this.plot, this.cursor);
    this.element = h('figure', { class: 'chart-box' },
      h('figcaption', {}, h('b', {}, title), this.now), h('p', { class: 'chart-top' }, this.top), this.svg, this.ends, this.legend);
    this.svg.addEventListener('pointermove', (event) => this.point(event));
    this.svg.addEventListener('pointerleave', () => this.point(null));
  }

  /** Shows series of values, one for each time; null is a time without a value. */
  show(times, series) {
    Object.assign(this, { times, series });
    const values = series.flatMap((one) => one.values).filter((value) => value !== null);
    const sums = times.map((_, index) => series.reduce((sum, one) => sum + (one.values[index] ?? 0), 0));
    const most = ceiling(Math.max(0, ...(this.kind === 'bars' ? sums : values)));
    const x = (index) => (index * WIDTH) / times.length;
    const y = (value) => HEIGHT - 1 - (value / most) * (HEIGHT - 4);
    const wide = WIDTH / times.length;
    this.plot.replaceChildren(...(this.kind === 'bars' ? this.bars(series, x, y, wide) : this.lines(series, x, y, wide)));
    const isLong = times.at(-1) - times[0] > 12 * 3_600_000;
    const at = (time) => (isLong ? `${day(time)} ${clock(time).slice(0, 5)}` : clock(time).slice(0, 5));
    this.at = at;
    say(this.top, values.length > 0 ? this.format(most) : '');
    const [first, , last] = this.ends.children;
    say(first, at(times[0]));
    say(last, 'now');
    const newest = series.map((one) => `${one.name} ${this.word(latest(one.values))}`).join(', ');
    say(this.now, this.word(latest(series[0].values)));
    fill(this.legend, ...(series.length > 1 ? series.map((one) => h('span', {}, h('i', { class: `key-${one.style}` }), one.name)) : []));
    const highest = values.length > 0 ? `; highest ${this.format(Math.max(...values))}` : '';
    this.svg.setAttribute('aria-label', `${this.title} since ${at(times[0])}: last ${newest}${highest}`);
  }

  word(value) { return value === null ? 'none' : this.format(value); }

  /** Stacked bars. */
  bars(series, x, y, wide) {
    const base = this.times.map(() => 0);
    return series.flatMap((one) => one.values.map((value, index) => {
      if (!value) return null;
      const from = base[index];
      base[index] += value;
      return s('rect', { class: `bar-${one.style}`, x: x(index), width: Math.max(0.5, wide - 0.6), y: y(base[index]), height: Math.max(0.5, y(from) - y(base[index])) });
    }).filter(Boolean));
  }

  lines(series, x, y, wide) {
    return series.map((one) => {
      let path = '';
      one.values.forEach((value, index) => {
        if (value === null) return;
        const isFirst = index === 0 || one.values[index - 1] === null;
        path += `${isFirst ? 'M' : 'L'}${(x(index) + wide / 2).toFixed(1)} ${y(value).toFixed(1)}`;
        // A single value would have no length.
        if (isFirst && (one.values[index + 1] ?? null) === null) path += 'h1.5';
      });
      return s('path', { class: `line-${one.style}`, d: path });
    });
  }

  point(event) {
    if (!event || !this.times) {
      this.cursor.setAttribute('hidden', '');
      say(this.says, '');
      return;
    }
    const box = this.svg.getBoundingClientRect();
    const index = Math.min(this.times.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * this.times.length)));
    const at = ((index + 0.5) * WIDTH) / this.times.length;
    this.cursor.removeAttribute('hidden');
    this.cursor.setAttribute('x1', at);
    this.cursor.setAttribute('x2', at);
    say(this.says, `${this.at(this.times[index])}: ${this.series.map((one) => `${this.series.length > 1 ? `${one.name} ` : ''}${this.word(one.values[index])}`).join(', ')}`);
  }
}
