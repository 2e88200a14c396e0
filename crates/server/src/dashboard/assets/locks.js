// The list of holds: holder, operation, age, time left, and waiters. All holds of one resource, such as
// slots, are one card.

import { toResource, toWorker } from './addresses.js';
import { breakButton } from './actions.js';
import { empty, fill, foreign, h, mark, nameLink, reconcile, say } from './dom.js';
import { brief, count, duration, exact, hue, roughly } from './words.js';

const KINDS = ['lock', 'path', 'section', 'task'];
// How many resources are shown at first, most urgent first; a click shows the rest.
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
    this.rest = h('p', { class: 'rest', hidden: true });
    this.element = h('section', { class: 'panel', 'aria-labelledby': 'locks-title' },
      h('div', { class: 'panel-head' }, h('h2', { id: 'locks-title' }, 'Held'), this.count, this.kinds),
      this.list, this.more, this.rest, this.free, this.nothing);
  }

  show(search = '') {
    this.search = search;
    const { locks: all, counts } = this.model.snapshot;
    this.showKinds(all);
    const found = all.filter((lock) => this.admits(lock));
    const groups = grouped(found).sort(byUrgency);
    const shown = groups.slice(0, this.limit);
    const held = found.filter((lock) => !lock.is_stale).length;
    say(this.count, found.length === all.length ? count(counts.held) : `${count(held)} of ${count(counts.held)}`);
    reconcileCards(this.list, shown, this.model);
    this.more.hidden = groups.length <= shown.length;
    say(this.more, `Show more (${groups.length - shown.length})`);
    const left = counts.held + counts.lapsed + counts.dead - all.length;
    this.rest.hidden = left <= 0;
    say(this.rest, `and ${count(left)} more; \`tenure locks\` lists all.`);
    this.showFree();
    this.showNothing(all.length, found.length);
    this.tick();
  }

  /** Shows free resources that have waiters, and the next waiter. */
  showFree() {
    const queues = this.model.snapshot.free_queues.filter((queue) => this.admits({ ...queue, holder: queue.next }));
    reconcile(this.free, queues, (queue) => queue.resource,
      () => h('li', {}), (item, queue) => fill(item, nameLink(toResource(queue.resource), brief(queue.name, 120), { class: 'resource' }), ' is free; ',
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

  tick() { tickCards(this.list, this.model); }
}

/** All holds of each resource. */
export function grouped(locks) {
  const groups = new Map();
  for (const lock of locks) {
    if (!groups.has(lock.resource)) groups.set(lock.resource, []);
    groups.get(lock.resource).push(lock);
  }
  return [...groups.values()].map((holds) => {
    const [{ resource, kind, name, waiting, waiters, mode, slots, slots_taken: taken }] = holds;
    return { resource, kind, name, waiting, waiters, mode, slots, taken, holds };
  });
}

/** Shows a card for each group. */
export function reconcileCards(list, groups, model) {
  const key = (group) => `${group.resource}\n${group.holds.length > 1}\n${model.role}`;
  reconcile(list, groups, key, (group) => createCard(group, model), (card, group) => updateCard(card, group));
}

function createCard(group, model) {
  const part = {};
  const card = h('li', { class: 'lock', 'data-resource': group.resource },
    part.line = h('div', { class: 'lock-line' },
      h('span', { class: `kind kind-${group.kind}` }, group.kind),
      nameLink(toResource(group.resource), brief(group.name, 120), { class: 'resource', title: brief(group.resource, 500) }),
      part.mode = h('span', { class: 'chip' })),
    part.holds = h('ul', { class: 'holds' }),
    part.queue = h('ol', { class: 'queue', hidden: true, 'aria-label': 'Waiters, in order' }));
  Object.assign(card, { pieces: part, model });
  return card;
}

function updateCard(card, group) {
  const { line, holds, queue, mode } = card.pieces;
  const words = group.slots ? `${group.taken}/${group.slots} slots` : group.mode === 'exclusive' ? '' : group.holds.length > 1 ? `${group.mode} by ${group.holds.length}` : group.mode;
  say(mode, words);
  mode.hidden = !words;
  reconcile(holds, group.holds, (lock) => String(lock.token), (lock) => createHold(lock, card.model), updateHold);
  const isOne = group.holds.length === 1;
  const first = holds.firstElementChild.pieces.left;
  // A single hold has its time left in the first line, where the eye is.
  if (isOne && first.parentElement !== line) {
    line.querySelector('.left')?.remove();
    line.append(first);
  }
  card.single = isOne ? holds.firstElementChild : null;
  mark(card, 'data-stale', group.holds.every((lock) => lock.is_stale));
  updateQueue(queue, group);
}

function createHold(lock, model) {
  const part = {};
  const element = h('li', { class: 'hold', 'data-token': lock.token },
    h('div', { class: 'bar', 'aria-hidden': 'true' }, part.bar = h('i')),
    h('div', { class: 'lock-who' },
      h('i', { class: `dot hue-${hue(lock.holder)}` }),
      nameLink(toWorker(lock.holder), brief(lock.holder, 80), { class: 'holder', title: `${brief(lock.holder, 300)}, ${where(lock)}` }),
      lock.operation && foreign(brief(lock.operation, 160), { class: 'operation', title: brief(lock.operation, 1_000) }),
      part.left = h('span', { class: 'left' })),
    h('div', { class: 'lock-meta' },
      part.age = h('span', { title: `Acquired ${exact(lock.acquired_at)}` }), h('span', {}, `token ${lock.token}`),
      part.stale = h('span', { class: 'stale' }),
      model.isAdmin && breakButton(lock)));
  element.pieces = part;
  return element;
}

function updateHold(element, lock) {
  element.lock = lock;
  say(element.pieces.stale, lock.stale_reason ?? '');
  mark(element.pieces.left, 'title', lock.expires_at ? `Lapses ${exact(lock.expires_at)}` : null);
  drain(element, lock);
}

function updateQueue(queue, group) {
  queue.hidden = group.waiters.length === 0;
  const shown = group.waiters.slice(0, 5);
  const key = (waiter) => `${waiter.holder}\n${waiter.waiting_since}\n${waiter.pid}`;
  const create = (waiter) => {
    const since = h('span', { class: 'since', title: `Waits since ${exact(waiter.waiting_since)}` });
    const item = h('li', {}, h('i', { class: `dot hue-${hue(waiter.holder)}` }),
      nameLink(toWorker(waiter.holder), brief(waiter.holder, 60)), since);
    item.since = since;
    return item;
  };
  const update = (item, waiter) => {
    item.waited = waiter.waited_seconds;
    item.title = waiter.operation ? brief(waiter.operation, 200) : '';
  };
  reconcile(queue, shown, key, create, update);
  mark(queue, 'data-more', group.waiting > shown.length ? `+${group.waiting - shown.length}` : null);
}

/** Animates the bar; a renewal, or a clock that differs, restarts it. */
function drain(element, lock) {
  // Another program's claim without a limit.
  if (lock.seconds_left === null) {
    element.endsAt = Infinity;
    element.whole = Infinity;
    return;
  }
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
export function tickCards(list, model) {
  const older = model.sinceSnapshot();
  for (const card of list.children) {
    for (const element of card.pieces.holds.children) {
      const { lock, pieces: part } = element;
      const left = Math.max(0, (element.endsAt - performance.now()) / 1000);
      const share = left === Infinity ? 1 : (left * 1000) / element.whole;
      say(part.left, left === Infinity ? 'no limit' : left > 0 ? `${duration(Math.ceil(left))} left` : 'lapsed');
      const state = left === 0 ? 'none' : share < LAST ? 'last' : share < LATE ? 'late' : 'fine';
      mark(element, 'data-left', state);
      mark(part.left, 'data-left', state);
      const age = duration(lock.held_seconds + older);
      say(part.age, lock.is_stale ? `taken ${age} ago` : `held ${age}`);
    }
    for (const item of card.pieces.queue.children) say(item.since, roughly(item.waited + older));
  }
}

const where = (lock) => (lock.hostname ? `on ${lock.hostname}${lock.pid ? `, process ${lock.pid}` : ''}` : 'elsewhere');

const rank = (group) => (group.holds.some((lock) => lock.is_stale) ? 0 : group.waiting > 0 ? 1 : 2);

function byUrgency(one, other) {
  return rank(one) - rank(other)
    || KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind)
    || one.holds[0].token - other.holds[0].token || (one.resource < other.resource ? -1 : 1);
}
