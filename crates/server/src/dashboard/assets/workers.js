// The list of workers, each with everything that it holds.

import { empty, fill, foreign, h, mark, reconcile, say } from './dom.js';
import { brief, count, duration, hue } from './words.js';

const SHOWN = 200;
const SHOWN_SMALL = 8;
const THINGS = 6;

export class Workers {
  constructor(model, isSmall) {
    this.model = model;
    this.isSmall = isSmall;
    this.count = h('span', { class: 'count' });
    this.list = h('ul', { class: 'workers' });
    this.rest = h('p', { class: 'rest', hidden: true });
    this.nothing = h('div', { hidden: true }, empty('No workers', 'Start a worker:', 'tenure work -- ./agent.sh'));
    if (isSmall) this.list.classList.add('brief');
    const id = isSmall ? 'workers-small' : 'workers-all';
    this.element = h('section', { class: 'panel', 'aria-labelledby': id },
      h('div', { class: 'panel-head' }, h('h2', { id }, 'Workers'), this.count), this.list, this.rest, this.nothing);
  }

  show(search = '') {
    const all = this.model.snapshot.workers;
    const found = search ? all.filter((worker) => admits(worker, search)) : all;
    const most = this.isSmall ? SHOWN_SMALL : SHOWN;
    const working = found.filter((worker) => !worker.is_stale).length;
    const { counts } = this.model.snapshot;
    say(this.count, found.length === all.length ? count(counts.workers) : `${working} of ${counts.workers}`);
    reconcile(this.list, found.slice(0, most), (worker) => worker.holder, create, update);
    this.rest.hidden = found.length <= most;
    say(this.rest, `and ${count(found.length - most)} more`);
    this.nothing.hidden = all.length > 0;
    this.tick();
  }

  tick() {
    const now = this.model.now();
    for (const element of this.list.children) {
      say(element.pieces.since, `for ${duration((now - element.begun) / 1000)}`);
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
      foreign(brief(worker.holder, 80), { class: 'holder' }),
      part.alive = h('span', { class: 'alive' }),
      part.since = h('span', { class: 'since' })),
    part.things = h('div', { class: 'things' }),
    part.where = h('div', { class: 'where' }));
  element.pieces = part;
  return element;
}

function update(element, worker) {
  element.begun = Date.parse(worker.since);
  say(element.pieces.alive, worker.alive === 'dead' ? 'dead' : worker.is_stale ? 'lapsed' : worker.alive === 'unknown' ? '' : worker.alive);
  mark(element, 'data-stale', worker.is_stale);
  mark(element, 'data-alive', worker.alive);
  say(element.pieces.where, worker.hostname ? `${worker.hostname}${worker.pid ? ` · process ${worker.pid}` : ''}` : 'elsewhere');
  const things = [...worker.tasks.map((task) => ['task', task.title, task.id]), ...worker.locks.map((lock) => ['lock', lock, lock])];
  const text = JSON.stringify(things);
  if (element.things === text) return;
  element.things = text;
  const shown = things.slice(0, THINGS).map(([kind, name, id]) => foreign(brief(name, 80), { class: `thing thing-${kind}`, title: brief(id, 200) }));
  fill(element.pieces.things, ...shown, things.length > THINGS && h('span', { class: 'rest' }, `+${things.length - THINGS}`));
}
