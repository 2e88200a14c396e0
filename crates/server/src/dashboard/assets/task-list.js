// The tasks as a list, newest first, with a selection for actions on many. Only the rows in sight exist.

import { toTask, toWorker } from './addresses.js';
import { BULK_MAX, bulkButtons } from './bulk.js';
import { fill, foreign, h, mark, nameLink, reconcile, say } from './dom.js';
import { hasConditions } from './task-filter.js';
import { TaskQuery } from './task-query.js';
import { STATUS_WORDS, brief, count, duration, exact, hue, roughly } from './words.js';

// The height of a row in pixels, as in style.css.
const ROW = 44;
// How many rows beyond those in sight exist.
const BEYOND = 8;

export class TaskList {
  constructor(model) {
    this.model = model;
    this.selected = new Set();
    this.all = h('input', { type: 'checkbox', 'aria-label': 'Select all that are loaded', onchange: () => this.selectAll() });
    this.says = h('span', { class: 'count' });
    this.actions = h('div', { class: 'bulk-actions', role: 'group', 'aria-label': 'Actions on selected tasks' });
    this.rows = h('ul', { class: 'rows' });
    this.box = h('div', { class: 'rows-box', tabindex: 0, role: 'group', 'aria-label': 'List of tasks' }, this.rows);
    this.pick = h('label', { class: 'pick' }, this.all, 'Select all');
    this.element = h('div', { class: 'panel task-list' },
      h('div', { class: 'list-head' }, this.pick, this.says, this.actions), this.box);
    this.box.addEventListener('scroll', () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  setFilter(filter) {
    const text = JSON.stringify(filter);
    if (text === this.text) return;
    this.text = text;
    this.query?.close();
    this.query = null;
    this.selected.clear();
    if (filter === null) return;
    this.query = new TaskQuery(this.model, filter, 'newest');
    this.box.scrollTop = 0;
    this.query.more();
  }

  selectAll() {
    this.selected = new Set(this.all.checked ? this.tasks.slice(0, BULK_MAX).map((task) => task.id) : []);
    this.show();
  }

  show() {
    if (!this.query) return 0;
    // The order of ages is that of the times at which tasks were added, and within a second that of pages.
    this.tasks = [...this.query.found.values()];
    this.tasks.sort((one, other) => other.createdAt - one.createdAt);
    for (const id of this.selected) if (!this.query.found.has(id)) this.selected.delete(id);
    const { isComplete, loading } = this.query;
    const total = this.total();
    const some = `${count(this.tasks.length)}${isComplete ? '' : total ? ` of ${count(total)}` : '+'} ${this.tasks.length === 1 ? 'task' : 'tasks'}`;
    const words = `${some}${loading ? ', loading…' : isComplete ? '' : ' loaded'}`;
    say(this.says, this.selected.size > 0 ? `${count(this.selected.size)} of ${words} selected` : words);
    this.showActions();
    this.draw();
    return this.tasks.length;
  }

  /** How many tasks there are, where the server counts them; 0 where it does not. */
  total() {
    const { filter } = this.query;
    if (hasConditions({ ...filter, status: '', section: '' })) return 0;
    const totals = this.model.tallies(filter.section);
    return filter.status ? totals[filter.status] ?? 0 : Object.values(totals).reduce((sum, number) => sum + number, 0);
  }

  showActions() {
    this.pick.hidden = !this.model.canWork;
    const chosen = this.tasks.filter((task) => this.selected.has(task.id));
    this.all.checked = chosen.length > 0 && chosen.length === Math.min(this.tasks.length, BULK_MAX);
    this.all.indeterminate = chosen.length > 0 && !this.all.checked;
    const text = JSON.stringify([chosen.map((task) => [task.id, task.status]), this.model.role]);
    if (text === this.chosenText) return;
    this.chosenText = text;
    fill(this.actions, ...(chosen.length > 0 ? bulkButtons(this.model, chosen, () => { this.selected.clear(); this.show(); }) : []));
  }

  draw() {
    if (!this.query || !this.tasks) return;
    const height = this.box.clientHeight;
    if (height === 0) return;
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - BEYOND);
    const last = Math.min(this.tasks.length, Math.ceil((this.box.scrollTop + height) / ROW) + BEYOND);
    const shown = this.tasks.slice(first, last).map((task, index) => ({ task, place: first + index }));
    this.rows.style.height = `${this.tasks.length * ROW}px`;
    reconcile(this.rows, shown, ({ task }) => `${task.id}\n${this.model.role}`, ({ task }) => this.createRow(task), (row, { task, place }) => this.updateRow(row, task, place));
    if (last >= this.tasks.length - BEYOND && !this.query.isComplete && !this.query.loading && !this.query.error) this.query.more();
    this.tick();
  }

  createRow(task) {
    const row = h('li', { class: 'task-row', 'data-id': task.id });
    const pick = h('input', {
      type: 'checkbox', 'aria-label': `Select ${brief(task.title, 80)}`,
      onchange: () => { this.selected[pick.checked ? 'add' : 'delete'](task.id); this.show(); },
    });
    pick.hidden = !this.model.canWork;
    row.pick = pick;
    return row;
  }

  updateRow(row, task, place) {
    row.style.transform = `translateY(${place * ROW}px)`;
    mark(row, 'aria-posinset', place + 1);
    mark(row, 'aria-setsize', this.query.isComplete ? this.tasks.length : -1);
    row.pick.checked = this.selected.has(task.id);
    if (row.task === task) return;
    row.task = task;
    const who = task.claimed_by ?? task.finished_by;
    row.since = h('span', { class: 'since' });
    fill(row, row.pick,
      h('span', { class: 'row-status' }, h('i', { class: `dot status-${task.status}` }), STATUS_WORDS[task.status] ?? task.status),
      nameLink(toTask(task.id), brief(task.title, 200), { class: 'row-title', title: brief(task.title, 1_000) }),
      h('span', { class: 'row-labels' }, task.section && foreign(brief(task.section, 40), { class: 'chip' }), ...task.labels.slice(0, 3).map((label) => foreign(brief(label, 30), { class: 'label' }))),
      h('span', { class: 'row-worker' }, who && h('i', { class: `dot hue-${hue(who)}` }), who && nameLink(toWorker(who), brief(who, 60))),
      row.since);
    mark(row.since, 'title', task.status === 'in_progress' && task.claimed_at ? `Taken ${exact(task.claimed_at)}` : `Added ${exact(task.created_at)}`);
  }

  tick() {
    const now = this.model.now();
    for (const row of this.rows.children) {
      const isRunning = row.task.status === 'in_progress' && row.task.claimedAt;
      say(row.since, isRunning ? `for ${duration((now - row.task.claimedAt) / 1000)}` : `${roughly((now - row.task.createdAt) / 1000)} ago`);
    }
  }
}
