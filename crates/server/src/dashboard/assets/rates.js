// The rates view: how fast tasks are done and how long things take, over an hour or a day, by section.

import { changeFilter, format } from './addresses.js';
import { Chart } from './chart.js';
import { ask } from './connection.js';
import { empty, fill, foreign, h, mark, nameLink, say } from './dom.js';
import { brief, clock, count, duration } from './words.js';

const POLL_MS = 10_000;

const perMinute = (value) => (value === 0 ? '0' : value < 10 ? value.toFixed(1).replace(/\.0$/, '') : count(Math.round(value)));
const length = (ms) => (ms < 1_000 ? `${Math.round(ms)}\u202fms` : ms < 10_000 ? `${(ms / 1000).toFixed(1)}\u202fs` : duration(ms / 1000));

const TIMES = [
  ['queue', 'Time in queue'], ['progress', 'Time in progress'], ['hold', 'Time held'], ['wait', 'Time waited for a lock'],
];

export class Rates {
  constructor(model) {
    this.model = model;
    this.tasks = new Chart('Tasks per minute', 'bars', perMinute);
    this.times = TIMES.map(([name, title]) => [name, new Chart(title, 'lines', length)]);
    const choice = (window, words) => h('button', { type: 'button', 'data-window': window, onclick: () => changeFilter({ window }) }, words);
    this.windows = h('div', { class: 'choices', role: 'group', 'aria-label': 'Span of time' }, choice('', 'an hour'), choice('day', 'a day'));
    this.section = h('span', { class: 'count' });
    this.note = h('p', { class: 'rest', hidden: true });
    this.table = h('tbody', {});
    this.sections = h('section', { class: 'panel', 'aria-labelledby': 'sections-title', hidden: true },
      h('div', { class: 'panel-head' }, h('h2', { id: 'sections-title' }, 'By section')),
      h('div', { class: 'table-box', tabindex: 0, role: 'group', 'aria-label': 'Figures by section' }, h('table', {},
        h('thead', {}, h('tr', {}, ...['Section', 'Completed', 'Failed', 'Per minute', 'In queue', 'In progress'].map((words) => h('th', { scope: 'col' }, words)))), this.table)));
    this.charts = h('div', { class: 'charts' }, this.tasks.element, ...this.times.map(([, chart]) => chart.element));
    this.nothing = h('div', { hidden: true });
    this.element = h('div', { class: 'rates' },
      h('section', { class: 'panel', 'aria-labelledby': 'rates-title' },
        h('div', { class: 'panel-head' }, h('h2', { id: 'rates-title' }, 'Rates'), this.section, this.windows), this.charts, this.note, this.nothing),
      this.sections);
  }

  show(search, filter) {
    const asked = new URLSearchParams({ window: filter.window === 'day' ? 'day' : 'hour' });
    if (filter.section) asked.set('section', filter.section);
    for (const button of this.windows.children) mark(button, 'aria-pressed', (filter.window === 'day' ? 'day' : '') === button.dataset.window ? 'true' : 'false');
    this.filter = filter;
    const text = String(asked);
    const isDue = performance.now() - (this.askedAt ?? -Infinity) > POLL_MS;
    if (text !== this.text || isDue) this.load(text);
  }

  leave() { this.text = null; }

  tick() { if (this.text && performance.now() - this.askedAt > POLL_MS) this.load(this.text); }

  async load(text) {
    this.text = text;
    this.askedAt = performance.now();
    const rates = await ask('GET', `/v1/rates?${text}`).catch((problem) => ({ problem }));
    if (text !== this.text) return;
    this.nothing.hidden = !rates.problem;
    this.charts.hidden = Boolean(rates.problem);
    this.sections.hidden = Boolean(rates.problem) || rates.sections.length === 0;
    if (rates.problem) fill(this.nothing, empty('Rates cannot be loaded', rates.problem.message || 'Sign in again.'));
    else this.draw(rates);
  }

  draw(rates) {
    const { buckets, bucket_seconds: seconds, sections, complete_since: since } = rates;
    const times = buckets.map((bucket) => Date.parse(bucket.at));
    const rate = (name) => buckets.map((bucket) => (bucket[name] * 60) / seconds);
    this.tasks.show(times, [{ name: 'completed', style: 'good', values: rate('completed') }, { name: 'failed', style: 'bad', values: rate('failed') }]);
    for (const [name, chart] of this.times) {
      chart.show(times, [
        { name: 'mean', style: 'main', values: buckets.map((bucket) => bucket[name].mean_ms) },
        { name: 'longest', style: 'light', values: buckets.map((bucket) => bucket[name].max_ms) }]);
    }
    fill(this.section, this.filter.section ? h('span', {}, 'of section ', foreign(brief(this.filter.section, 80)), ' · ', h('a', { href: format({ view: 'rates', filter: { ...this.filter, section: '' } }) }, 'all sections')) : 'of everything');
    this.note.hidden = since === null;
    if (since !== null) say(this.note, `Figures before ${clock(Date.parse(since))} are too low: the server could not read all of that history.`);
    const row = (section) => h('tr', {}, h('th', { scope: 'row' }, nameLink(format({ view: 'rates', filter: { ...this.filter, section: section.name } }), brief(section.name, 80))),
      ...[count(section.completed), count(section.failed), perMinute(section.completed_per_minute), ...['queue', 'progress'].map((name) => (section[name].mean_ms === null ? '–' : length(section[name].mean_ms)))].map((words) => h('td', {}, words)));
    fill(this.table, ...sections.map(row));
  }
}
