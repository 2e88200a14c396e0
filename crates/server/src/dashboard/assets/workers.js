// The list of workers, idle ones too, each with everything that it holds.

import { toResource, toTask, toWorker } from './addresses.js';
import { empty, fill, h, mark, nameLink, reconcile, say } from './dom.js';
import { brief, count, duration, exact, hue } from './words.js';

const SHOWN = 200;
const SHOWN_SMALL = 8;
const THINGS = 6;

export const STATE_WORDS = { working: 'Working', idle: 'Idle', holding: 'Holds something', gone: 'Gone' };

/** The state of a worker, as the server judges it. */
export const stateOf = (worker) => worker.state ?? (worker.is_stale || worker.alive === 'dead' ? 'gone' : worker.tasks.length > 0 ? 'working' : 'holding');

export class Workers {
  constructor(model, isSmall) {
    this.model = model;
    this.isSmall = isSmall;
    this.count = h('span', { class: 'count' });
    this.list = h('ul', { class: 'workers' });
    this.rest = h('p', { class: 'rest', hidden: true });
    this.nothing = h('div', { hidden: true });
    if (isSmall) this.list.classList.add('brief');
    const id = isSmall ? 'workers-small' : 'workers-all';
    this.element = h('section', { class: 'panel', 'aria-labelledby': id },
      h('div', { class: 'panel-head' }, h('h2', { id }, 'Workers'), this.count), this.list, this.rest, this.nothing);
  }

  show(search = '') {
    const all = this.model.snapshot.workers;
    const found = search ? all.filter((worker) => admits(worker, search)) : all;
    const most = this.isSmall ? SHOWN_SMALL : SHOWN;
    const present = found.filter((worker) => stateOf(worker) !== 'gone').length;
    const { counts } = this.model.snapshot;
    say(this.count, found.length === all.length ? count(counts.workers) : `${count(present)} of ${count(counts.workers)}`);
    reconcile(this.list, found.slice(0, most), (worker) => worker.id ?? worker.holder, create, update);
    this.rest.hidden = found.length <= most;
    say(this.rest, `and ${count(found.length - most)} more`);
    this.showNothing(found.length > 0 ? '' : all.length > 0 ? 'filtered' : 'empty');
    this.tick();
  }

  showNothing(state) {
    this.nothing.hidden = !state;
    if (this.nothing.dataset.state === state) return;
    this.nothing.dataset.state = state;
    fill(this.nothing, state === 'empty' && empty('No workers', 'Start a worker:', 'tenure work -- ./agent.sh'),
      state === 'filtered' && empty('Nothing matches', 'No worker has this text in its name, host, locks or tasks.'));
  }

  tick() {
    const now = this.model.now();
    for (const element of this.list.children) {
      say(element.pieces.since, element.begun ? `for ${duration((now - element.begun) / 1000)}` : '');
    }
  }
}

function admits(worker, search) {
  const words = [worker.holder, worker.hostname ?? '', ...worker.locks, ...worker.tasks.flatMap((task) => [task.id, task.title])];
  return words.join('\n').toLowerCase().includes(search);
}

function create(worker) {
  const part = {};
  const element = h('li', { class: 'worker' },
    h('div', { class: 'worker-line' },
      h('i', { class: `dot big hue-${hue(worker.holder)}` }),
      nameLink(toWorker(worker.holder), brief(worker.holder, 80), { class: 'holder', title: brief(worker.holder, 300) }),
      part.alive = h('span', { class: 'alive' }),
      part.since = h('span', { class: 'since' })),
    part.things = h('div', { class: 'things' }),
    part.where = h('div', { class: 'where' }));
  element.pieces = part;
  return element;
}

const ALIVE_WORDS = (worker) => {
  if (worker.alive === 'dead') return 'dead';
  if (worker.is_stale) return 'lapsed';
  if (stateOf(worker) === 'idle') return 'idle';
  return worker.alive === 'unknown' ? '' : worker.alive;
};

function update(element, worker) {
  const begun = worker.since ?? worker.started_at;
  element.begun = begun ? Date.parse(begun) : 0;
  mark(element.pieces.since, 'title', begun ? `Since ${exact(begun)}` : null);
  say(element.pieces.alive, ALIVE_WORDS(worker));
  mark(element, 'data-stale', worker.is_stale);
  mark(element, 'data-alive', worker.alive);
  mark(element, 'data-state', stateOf(worker));
  say(element.pieces.where, [
    worker.hostname ? `${worker.hostname}${worker.pid ? ` · process ${worker.pid}` : ''}` : 'elsewhere',
    worker.done !== null && worker.done !== undefined && `${count(worker.done)} done`,
    worker.failed > 0 && `${count(worker.failed)} failed`,
    worker.section && `takes ${worker.section}`,
  ].filter(Boolean).join(' · '));
  const things = [...worker.tasks.map((task) => ['task', task.title, toTask(task.id)]), ...worker.locks.map((lock) => ['lock', lock, toResource(lock)])];
  const text = JSON.stringify(things);
  if (element.things === text) return;
  element.things = text;
  const shown = things.slice(0, THINGS).map(([kind, name, href]) => nameLink(href, brief(name, 80), { class: `thing thing-${kind}`, title: brief(name, 300) }));
  fill(element.pieces.things, ...shown, things.length > THINGS && h('span', { class: 'rest' }, `+${things.length - THINGS}`));
}
