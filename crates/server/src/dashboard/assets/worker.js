// The page of a worker: what it has now, what it has done, and its history.

import { format, toResource, toTask } from './addresses.js';
import { copyAddressButton, copyButton } from './copy.js';
import { fill, foreign, h, nameLink, reconcile, when } from './dom.js';
import { EventList } from './event-list.js';
import { showPastHolds } from './past-holds.js';
import { brief, count, hue } from './words.js';
import { STATE_WORDS, stateOf } from './workers.js';

const HISTORY_FIRST = 50;

const panel = (title, ...children) => h('section', { class: 'panel', 'aria-label': title }, h('div', { class: 'panel-head' }, h('h2', {}, title)), ...children);

export class WorkerPage {
  constructor(model) {
    this.model = model;
    this.head = h('div', { class: 'page-head' });
    this.facts = h('dl', { class: 'facts-list' });
    this.things = h('ul', { class: 'plain-list' });
    this.noThings = h('p', { class: 'rest' }, 'It holds nothing now.');
    this.past = h('ol', { class: 'attempts' });
    this.noPast = h('p', { class: 'rest' }, 'No past holds are known.');
    this.history = new EventList(model, { first: HISTORY_FIRST, nothing: h('p', { class: 'rest' }, 'No events of this worker are kept.') });
    this.element = h('div', { class: 'detail' },
      h('div', { class: 'detail-main' }, panel('Worker', this.head, this.facts), panel('Now', this.things, this.noThings), panel('Past holds', this.past, this.noPast)),
      h('div', { class: 'detail-side' }, panel('History', this.history.element)));
  }

  show(search, filter, id) {
    const all = this.model.snapshot.workers.filter((worker) => worker.holder === id);
    if (id !== this.id) {
      this.id = id;
      fill(this.head, h('h2', { class: 'task-title' }, h('i', { class: `dot big hue-${hue(id)}` }), foreign(brief(id, 300)), copyButton(id, 'name')),
        h('div', { class: 'page-actions' }, h('a', { class: 'button small', href: format({ view: 'tasks', filter: { worker: id, as: 'list' } }) }, 'Its tasks'), copyAddressButton()));
    }
    document.title = `${brief(id, 60)} · tenure`;
    const rows = all.length > 0 ? all.flatMap((worker) => this.rows(worker)) : [['State', 'Not working now']];
    const text = JSON.stringify(all);
    if (text !== this.text || rows.length === 1) {
      this.text = text;
      fill(this.facts, ...rows.filter(([, value]) => value).flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
    }
    const things = all.flatMap((worker) => [...worker.tasks.map((task) => ['task', task.title, toTask(task.id)]), ...worker.locks.map((lock) => [/^(section|path):/.exec(lock)?.[1] ?? 'lock', lock, toResource(lock)])]);
    reconcile(this.things, things, ([, , href]) => href, ([kind, name, href]) => h('li', {}, h('span', { class: 'kind' }, kind), nameLink(href, brief(name, 300))), () => {});
    this.noThings.hidden = things.length > 0;
    this.history.setFilter({ by: id });
    this.history.show();
    const known = [...this.history.older].reverse();
    const newest = known.at(-1)?.revision ?? 0;
    const events = [...known, ...this.model.events.filter((event) => event.holder === id && event.revision > newest)];
    this.noPast.hidden = showPastHolds(this.past, events, 'resource') > 0;
  }

  rows(worker) {
    return [
      ['State', STATE_WORDS[stateOf(worker)]],
      ['Host', worker.hostname && `${worker.hostname}${worker.pid ? `, process ${worker.pid}` : ''}`],
      ['Started', worker.started_at && when(worker.started_at)],
      ['Last seen', worker.last_seen_at && when(worker.last_seen_at)],
      ['Holds since', worker.since && when(worker.since)],
      ['Takes', (worker.section || worker.labels?.length > 0) && [worker.section && `section ${worker.section}`, ...(worker.labels ?? []).map((label) => `label ${label}`)].filter(Boolean).join(', ')],
      ['Done', worker.done !== null && worker.done !== undefined && count(worker.done)],
      ['Failed', worker.failed !== null && worker.failed !== undefined && count(worker.failed)],
    ];
  }

  leave() { this.id = null; }

  tick() {}
}
