// The page of a lock, section or path: who holds it, who waits, and its history.

import { ask } from './connection.js';
import { copyAddressButton, copyButton } from './copy.js';
import { foreign, fill, h, nameLink, reconcile, say, when } from './dom.js';
import { toWorker } from './addresses.js';
import { EventList } from './event-list.js';
import { grouped, reconcileCards, tickCards } from './locks.js';
import { showPastHolds } from './past-holds.js';
import { brief, duration, hue } from './words.js';

const HISTORY_FIRST = 50;

const panel = (title, ...children) => h('section', { class: 'panel', 'aria-label': title }, h('div', { class: 'panel-head' }, h('h2', {}, title)), ...children);

export class LockPage {
  constructor(model) {
    this.model = model;
    this.head = h('div', { class: 'page-head' });
    this.state = h('p', { class: 'task-state' });
    this.holders = h('ul', { class: 'locks' });
    this.waiters = h('ol', { class: 'attempts' });
    this.noWaiters = h('p', { class: 'rest' }, 'Nothing waits for it.');
    this.past = h('ol', { class: 'attempts' });
    this.noPast = h('p', { class: 'rest' }, 'No past holds are known.');
    this.history = new EventList(model, { first: HISTORY_FIRST, nothing: h('p', { class: 'rest' }, 'No events of this name are kept.') });
    this.element = h('div', { class: 'detail' },
      h('div', { class: 'detail-main' }, panel('Resource', this.head, this.state, this.holders), panel('Waiters', this.waiters, this.noWaiters), panel('Past holds', this.past, this.noPast)),
      h('div', { class: 'detail-side' }, panel('History', this.history.element)));
  }

  show(search, filter, id) {
    if (id !== this.id) {
      this.id = id;
      this.forget();
      fill(this.head, h('h2', { class: 'task-title' }, foreign(brief(id, 1_100), { class: 'resource' }), copyButton(id, 'name')),
        h('div', { class: 'page-actions' }, copyAddressButton()));
    }
    document.title = `${brief(id, 60)} · tenure`;
    if (this.askedAt !== this.model.receivedAt) this.refresh(id);
    this.showHolders();
    this.history.setFilter({ resource: id });
    this.history.show();
    const known = [...this.history.older].reverse();
    const newest = known.at(-1)?.revision ?? 0;
    const events = [...known, ...this.model.events.filter((event) => event.resource === id && event.revision > newest)];
    this.noPast.hidden = showPastHolds(this.past, events, 'holder') > 0;
    this.tick();
  }

  /** Shows nothing of the lock before: its Break button would be taken for this one's. */
  forget() {
    this.shown = null;
    this.askedAt = null;
    say(this.state, '');
    reconcileCards(this.holders, [], this.model);
    this.showWaiters([], 0);
  }

  /** Asks who holds and waits, also for what overlaps a path: the snapshot may not have all of it. */
  async refresh(id) {
    this.askedAt = this.model.receivedAt;
    const shown = await ask('GET', `/v1/locks/show?resource=${encodeURIComponent(id)}`).catch((problem) => ({ problem }));
    if (id !== this.id) return;
    this.shown = shown;
    this.showHolders();
  }

  showHolders() {
    if (!this.shown) return;
    const { problem, free, holds = [], waiters = [] } = this.shown;
    const known = this.model.snapshot.locks;
    const complete = (hold) => known.find((lock) => lock.resource === hold.resource && lock.token === hold.token)
      ?? { ...hold, ttl_ms: 0, held_seconds: (this.model.now() - Date.parse(hold.acquired_at)) / 1000, waiters: [] };
    say(this.state, problem ? problem.message || 'Sign in again.' : free ? 'Free' : 'Held');
    reconcileCards(this.holders, grouped(holds.map(complete)), this.model);
    this.showWaiters(waiters, waiters.length);
  }

  showWaiters(waiters, waiting) {
    this.noWaiters.hidden = waiting > 0;
    const create = (waiter) => {
      const item = h('li', { class: 'attempt' }, h('span', { class: 'number' }, `${waiter.place}.`),
        h('span', { class: 'who' }, h('i', { class: `dot hue-${hue(waiter.holder)}` }), nameLink(toWorker(waiter.holder), brief(waiter.holder, 120))),
        h('span', { class: 'since' }), when(waiter.waiting_since),
        waiter.operation && h('p', { class: 'attempt-more', dir: 'auto' }, foreign(brief(waiter.operation, 300))));
      return item;
    };
    reconcile(this.waiters, waiters, (waiter) => `${waiter.holder}\n${waiter.waiting_since}\n${waiter.place}`, create,
      (item, waiter) => { item.waited = waiter.waited_seconds; });
  }

  leave() { this.id = null; }

  tick() {
    tickCards(this.holders, this.model);
    const older = this.model.sinceSnapshot();
    for (const item of this.waiters.children) say(item.querySelector('.since'), duration(item.waited + older));
  }
}
