// The list of holds: holder, operation, age, time left, and waiters.

import { breakButton } from './actions.js';
import { empty, fill, foreign, h, mark, reconcile, say } from './dom.js';
import { brief, duration, hue, roughly } from './words.js';

const KINDS = ['lock', 'path', 'section', 'task'];
// How many holds are shown at first, most urgent first; a click shows the rest.
const FIRST = 8;
const PAGE = 48;
// A renewed lease rarely falls below two thirds; below one third, renewals are late.
const LATE = 1 / 3;
const LAST = 1 / 10;

export class Locks {
  constructor(model) {
    this.model = model;
    this.kind = 'all';
    this.limit = FIRST;
    this.count = h('span', { class: 'count' });
    this.kinds = h('div', { class: 'choices', role: 'group', 'aria-label': 'Kinds' });
    this.list = h('ul', { class: 'locks' });
    this.more = h('button', { type: 'button', class: 'more', hidden: true, onclick: () => { this.limit += PAGE; this.show(this.search); } });
    this.free = h('ul', { class: 'free', 'aria-label': 'Free, with waiters' });
    this.nothing = h('div', { hidden: true });
    this.element = h('section', { class: 'panel', 'aria-labelledby': 'locks-title' },
      h('div', { class: 'panel-head' }, h('h2', { id: 'locks-title' }, 'Held'), this.count, this.kinds),
      this.list, this.more, this.free, this.nothing);
  }

  show(search = '') {
    this.search = search;
    const { locks: all, counts } = this.model.snapshot;
    this.showKinds(all);
    const found = all.filter((lock) => this.admits(lock)).sort(byUrgency);
    const shown = found.slice(0, this.limit);
    const held = found.filter((lock) => !lock.is_stale).length;
    say(this.count, found.length === all.length ? String(counts.held) : `${held} of ${counts.held}`);
    // All slots of a resource share one queue, which is shown once.
    this.withQueue = new Map(shown.map((lock) => [lock.resource, lock.token]));
    const key = (lock) => `${lock.resource}\n${lock.token}\n${this.model.role}`;
    reconcile(this.list, shown, key, (lock) => this.create(lock), (element, lock) => this.update(element, lock));
    this.more.hidden = found.length <= shown.length;
    say(this.more, `Show more (${found.length - shown.length})`);
    this.showFree();
    this.showNothing(all.length, found.length);
    this.tick();
  }

  /** Shows free resources that have waiters, and the next waiter. */
  showFree() {
    const queues = this.model.snapshot.free_queues.filter((queue) => this.admits({ ...queue, holder: queue.next }));
    reconcile(this.free, queues, (queue) => queue.resource,
      () => h('li', {}), (item, queue) => fill(item, foreign(brief(queue.name, 120), { class: 'resource' }), ' is free; ',
        foreign(brief(queue.next, 60)), ` is next of ${queue.waiting} waiting and was woken`));
  }

  showNothing(all, found) {
    this.nothing.hidden = found > 0;
    const state = found > 0 ? '' : all > 0 ? 'filtered' : 'empty';
    if (this.nothing.dataset.state === state) return;
    this.nothing.dataset.state = state;
    fill(this.nothing, state === 'empty' && empty('Nothing is held', 'Run a command under a lock:', 'tenure run deploy -- ./deploy.sh'),
      state === 'filtered' && empty('Nothing matches', 'Clear the search or choose another kind.'));
  }

  showKinds(all) {
    const present = KINDS.filter((kind) => all.some((lock) => lock.kind === kind));
    const choices = present.length > 1 ? ['all', ...present] : [];
    if (!choices.includes(this.kind)) this.kind = 'all';
    const create = (kind) => h('button', { type: 'button', onclick: () => { this.kind = kind; this.limit = FIRST; this.show(this.search); } }, kind === 'all' ? 'all' : `${kind}s`);
    reconcile(this.kinds, choices, (kind) => kind, create, (button, kind) => mark(button, 'aria-pressed', kind === this.kind ? 'true' : 'false'));
  }

  admits(lock) {
    if (this.kind !== 'all' && lock.kind !== this.kind) return false;
    if (!this.search) return true;
    const words = [lock.resource, lock.holder, lock.operation ?? '', lock.hostname ?? '', ...lock.waiters.map((waiter) => waiter.holder)];
    return words.join('\n').toLowerCase().includes(this.search);
  }

  create(lock) {
    const part = {};
    const element = h('li', { class: 'lock', 'data-resource': lock.resource, 'data-token': lock.token },
      h('div', { class: 'lock-line' },
        h('span', { class: `kind kind-${lock.kind}` }, lock.kind),
        foreign(brief(lock.name, 120), { class: 'resource', title: brief(lock.resource, 500) }),
        lock.mode !== 'exclusive' && h('span', { class: 'chip' }, lock.mode),
        part.left = h('span', { class: 'left' })),
      h('div', { class: 'bar', 'aria-hidden': 'true' }, part.bar = h('i')),
      h('div', { class: 'lock-who' },
        h('i', { class: `dot hue-${hue(lock.holder)}` }),
        foreign(brief(lock.holder, 80), { class: 'holder', title: where(lock) }),
        lock.operation && foreign(brief(lock.operation, 160), { class: 'operation' })),
      h('div', { class: 'lock-meta' },
        part.age = h('span', {}), h('span', {}, `token ${lock.token}`),
        part.stale = h('span', { class: 'stale' }),
        this.model.isAdmin && breakButton(lock)),
      part.queue = h('ol', { class: 'queue', hidden: true, 'aria-label': 'Waiters, in order' }));
    element.pieces = part;
    return element;
  }

  update(element, lock) {
    element.lock = lock;
    this.updateQueue(element.pieces.queue, lock);
    say(element.pieces.stale, lock.stale_reason ?? '');
    mark(element, 'data-stale', lock.is_stale);
    this.drain(element, lock);
  }

  updateQueue(queue, lock) {
    const hasQueue = this.withQueue.get(lock.resource) === lock.token;
    queue.hidden = lock.waiters.length === 0 || !hasQueue;
    const shown = hasQueue ? lock.waiters.slice(0, 5) : [];
    const key = (waiter) => `${waiter.holder}\n${waiter.waiting_since}\n${waiter.pid}`;
    const create = (waiter) => {
      const since = h('span', { class: 'since' });
      const item = h('li', {}, h('i', { class: `dot hue-${hue(waiter.holder)}` }),
        foreign(brief(waiter.holder, 60)), since);
      item.since = since;
      return item;
    };
    const update = (item, waiter) => {
      item.waited = waiter.waited_seconds;
      item.title = waiter.operation ? brief(waiter.operation, 200) : '';
    };
    reconcile(queue, shown, key, create, update);
    mark(queue, 'data-more', hasQueue && lock.waiting > shown.length ? `+${lock.waiting - shown.length}` : null);
  }

  /** Animates the bar; a renewal, or a clock that differs, restarts it. */
  drain(element, lock) {
    const endsAt = performance.now() + lock.seconds_left * 1000;
    if (element.endsAt !== undefined && Math.abs(element.endsAt - endsAt) < 400) return;
    element.endsAt = endsAt;
    element.animation?.cancel();
    const whole = Math.max(lock.ttl_ms ?? 0, lock.seconds_left * 1000, 1);
    const share = Math.min(1, (lock.seconds_left * 1000) / whole);
    element.whole = whole;
    element.animation = element.pieces.bar.animate(
      [{ transform: `scaleX(${share})` }, { transform: 'scaleX(0)' }],
      { duration: Math.max(1, lock.seconds_left * 1000), fill: 'forwards', easing: 'linear' });
  }

  /** Updates what changes every second. */
  tick() {
    const older = this.model.sinceSnapshot();
    for (const element of this.list.children) {
      const { lock, pieces: part } = element;
      const left = Math.max(0, (element.endsAt - performance.now()) / 1000);
      const share = (left * 1000) / element.whole;
      say(part.left, left > 0 ? `${duration(Math.ceil(left))} left` : 'lapsed');
      mark(element, 'data-left', left === 0 ? 'none' : share < LAST ? 'last' : share < LATE ? 'late' : 'fine');
      const age = duration(lock.held_seconds + older);
      say(part.age, lock.is_stale ? `taken ${age} ago` : `held ${age}`);
      for (const item of part.queue.children) say(item.since, roughly(item.waited + older));
    }
  }
}

const where = (lock) => (lock.hostname ? `on ${lock.hostname}${lock.pid ? `, process ${lock.pid}` : ''}` : 'elsewhere');

const rank = (lock) => (lock.is_stale ? 0 : lock.waiting > 0 ? 1 : 2);

function byUrgency(one, other) {
  return rank(one) - rank(other)
    || KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind)
    || one.token - other.token || (one.resource < other.resource ? -1 : 1);
}
