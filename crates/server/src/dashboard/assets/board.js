// The tasks as a board: a column for each status. Only the first cards of a column are created, and only
// the first pages of tasks are loaded.

import { format, toTask, toWorker } from './addresses.js';
import { fill, foreign, h, mark, nameLink, reconcile, say } from './dom.js';
import { verbButton } from './task-actions.js';
import { hasConditions } from './task-filter.js';
import { TaskQuery } from './task-query.js';
import { STATUS_WORDS, brief, count, duration, exact, hue } from './words.js';

// How many cards are created at once, so that the page stays fast with many tasks.
const FIRST = 40;
const MORE = 100;
// So many tasks fit on one page of an answer.
const FEW = 200;

const byOrder = (one, other) => one.priority - other.priority || one.position - other.position || one.createdAt - other.createdAt;
const byTaken = (one, other) => one.claimedAt - other.claimedAt;
const byEnd = (one, other) => other.finishedAt - one.finishedAt || other.createdAt - one.createdAt;

const COLUMNS = [
  { name: 'Pending', statuses: ['pending'], order: byOrder, first: 'oldest' },
  { name: 'In progress', statuses: ['in_progress'], order: byTaken, first: 'oldest' },
  { name: 'Review', statuses: ['review'], order: byOrder, first: 'oldest' },
  { name: 'Completed', statuses: ['completed'], order: byEnd, first: 'newest' },
  { name: 'Failed, blocked', statuses: ['failed', 'blocked'], order: byEnd, first: 'oldest' },
  { name: 'Cancelled, skipped', statuses: ['cancelled', 'skipped'], order: byEnd, first: 'newest', isMinor: true },
];

export class Board {
  constructor(model) {
    this.model = model;
    this.columns = COLUMNS.map((column) => this.column(column));
    this.element = h('div', { class: 'columns' }, ...this.columns.map((column) => column.element));
  }

  column(column) {
    const part = { ...column, limit: FIRST, queries: [], list: h('ul', { class: 'cards' }), count: h('span', { class: 'count' }) };
    part.more = h('button', { type: 'button', class: 'more', hidden: true, onclick: () => this.showMore(part) });
    part.title = h('a', {}, column.name);
    part.element = h('section', { class: 'column', 'aria-label': column.name, 'data-column': column.statuses[0] },
      h('h2', {}, h('i', { class: `dot status-${column.statuses[0]}` }), part.title, part.count), part.list, part.more);
    return part;
  }

  /** Shows the tasks that meet the conditions; null ends the queries. */
  setFilter(filter) {
    const text = JSON.stringify(filter);
    if (text === this.text) return;
    this.text = text;
    this.filter = filter;
    for (const column of this.columns) {
      column.queries.forEach((query) => query.close());
      column.limit = FIRST;
      const wanted = filter === null ? [] : column.statuses.filter((status) => !filter.status || filter.status === status);
      column.queries = wanted.map((status) => this.query(column, filter, status));
      if (filter) mark(column.title, 'href', format({ view: 'tasks', filter: { ...filter, status: column.statuses[0], as: 'list' } }));
    }
  }

  /** The tasks of a status. Where there are few, the server finds them faster from the oldest on. */
  query(column, filter, status) {
    const total = this.model.tallies(filter.section)[status] ?? 0;
    const query = new TaskQuery(this.model, { ...filter, status }, total <= FEW ? 'oldest' : column.first);
    if (total === 0) query.isComplete = true;
    else query.more();
    return query;
  }

  showMore(column) {
    column.limit += MORE;
    for (const query of column.queries) if (query.found.size < column.limit) query.more();
    this.show();
  }

  /** How many tasks there are, how many of these were found, and whether all were looked at. */
  show() {
    const totals = this.model.tallies(this.filter.section);
    const isCounted = !hasConditions({ ...this.filter, section: '', status: '' });
    let found = 0;
    for (const column of this.columns) found += this.showColumn(column, totals, isCounted);
    return found;
  }

  showColumn(column, totals, isCounted) {
    const tasks = column.queries.flatMap((query) => [...query.found.values()]).sort(column.order);
    const statuses = column.queries.map((query) => query.filter.status);
    const total = statuses.reduce((sum, status) => sum + (totals[status] ?? 0), 0);
    const isComplete = column.queries.every((query) => query.isComplete);
    const isLoading = column.queries.some((query) => query.loading);
    column.element.hidden = column.queries.length === 0 || (Boolean(column.isMinor) && total === 0 && tasks.length === 0);
    const shown = tasks.slice(0, column.limit);
    say(column.count, isCounted ? count(total) : `${count(tasks.length)}${isComplete ? '' : '+'} of ${count(total)}`);
    reconcile(column.list, shown, (task) => `${task.id}\n${this.model.role}`, (task) => this.createCard(task), (card, task) => this.updateCard(card, task));
    const hidden = isCounted && !isComplete ? Math.max(total, tasks.length) - shown.length : tasks.length - shown.length;
    column.more.hidden = hidden <= 0 && isComplete;
    mark(column.more, 'disabled', isLoading && tasks.length === shown.length);
    say(column.more, isLoading && tasks.length === shown.length ? 'Loading…' : hidden > 0 ? `Show more (${count(hidden)})` : 'Search further');
    return tasks.length;
  }

  createCard(task) {
    return h('li', { class: 'card', 'data-id': task.id });
  }

  updateCard(card, task) {
    const unmet = task.status === 'pending' ? this.model.unmet(task) : 0;
    const waits = task.not_before && task.status === 'pending' ? Math.max(0, Math.ceil((Date.parse(task.not_before) - this.model.now()) / 1000)) : 0;
    const lost = this.model.lostClaim(task);
    if (card.task === task && card.unmet === unmet && card.waits === waits && card.lost === lost) return;
    Object.assign(card, { task, unmet, waits, lost });
    const who = task.claimed_by ?? task.finished_by;
    card.elapsed = task.status === 'in_progress' && task.claimed_at ? h('span', { class: 'elapsed', title: `Taken ${exact(task.claimed_at)}` }) : null;
    fill(card,
      nameLink(toTask(task.id), brief(task.title), { class: 'card-title', dir: 'auto', 'aria-label': brief(`${task.title}, ${STATUS_WORDS[task.status] ?? task.status}`, 200), title: task.title.length > 100 ? brief(task.title, 1_000) : null }),
      who && h('p', { class: 'card-worker' }, h('i', { class: `dot hue-${hue(who)}` }), nameLink(toWorker(who), brief(who, 60)), card.elapsed),
      task.error && task.status !== 'completed' && h('p', { class: 'card-error', dir: 'auto' }, brief(task.error, 160)),
      h('p', { class: 'card-meta' },
        foreign(brief(task.id, 40), { class: 'id' }),
        lost && h('span', { class: 'chip hot' }, lost),
        task.status === 'blocked' && h('span', { class: 'chip hot' }, 'blocked'),
        task.status === 'cancelled' && h('span', { class: 'chip' }, 'cancelled'),
        task.status === 'skipped' && h('span', { class: 'chip' }, 'skipped'),
        task.section && !this.filter.section && foreign(brief(task.section, 40), { class: 'chip' }),
        unmet > 0 && h('span', { class: 'chip warm' }, `after ${unmet} more`),
        waits > 0 && h('span', { class: 'chip warm' }, `in ${duration(waits)}`),
        task.priority !== 50 && h('span', { class: 'chip' }, `p${task.priority}`),
        task.attempts > 1 && h('span', { class: 'chip' }, `try ${task.attempts}/${task.max_attempts}`),
        ...task.labels.slice(0, 4).map((label) => foreign(brief(label, 30), { class: 'label' })),
        verbButton(this.model, task, 'retry'), verbButton(this.model, task, 'approve')));
  }

  tick() {
    const now = this.model.now();
    for (const column of this.columns) {
      for (const card of column.list.children) {
        if (card.waits > 0) this.updateCard(card, card.task);
        if (card.elapsed) say(card.elapsed, duration((now - card.task.claimedAt) / 1000));
      }
    }
  }
}
