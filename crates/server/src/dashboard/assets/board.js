// The tasks view: a column for each status. Only the first cards of a column are created.

import { pauseButton, retryButton } from './actions.js';
import { empty, fill, foreign, h, mark, reconcile, say } from './dom.js';
import { showTask } from './task.js';
import { STATUS_WORDS, brief, count, duration, hue } from './words.js';

// How many cards are created at once, so that the page stays fast with many tasks.
const PAGE = 40;

const byOrder = (one, other) => one.priority - other.priority || one.position - other.position || one.createdAt - other.createdAt;
const byTaken = (one, other) => (one.claimed_at < other.claimed_at ? -1 : 1);
const byEnd = (one, other) => other.finishedAt - one.finishedAt || other.createdAt - one.createdAt;

const COLUMNS = [
  { name: 'Pending', statuses: ['pending'], order: byOrder },
  { name: 'In progress', statuses: ['in_progress'], order: byTaken },
  { name: 'Review', statuses: ['review'], order: byOrder },
  { name: 'Completed', statuses: ['completed'], order: byEnd },
  { name: 'Failed, blocked', statuses: ['failed', 'blocked'], order: byEnd },
  { name: 'Cancelled, skipped', statuses: ['cancelled', 'skipped'], order: byEnd, isMinor: true },
];

export class Board {
  constructor(model) {
    this.model = model;
    this.section = null;
    this.sections = h('div', { class: 'sections', role: 'group', 'aria-label': 'Sections' });
    this.note = h('p', { class: 'rest', hidden: true });
    this.nothing = h('div', { class: 'panel', hidden: true }, empty('No tasks', 'Add some; each is claimed by one worker:', 'tenure tasks add \'Fix login\' --section backend'));
    this.columns = COLUMNS.map((column) => this.column(column));
    this.grid = h('div', { class: 'columns' }, ...this.columns.map((column) => column.element));
    this.element = h('section', { 'aria-label': 'Tasks' }, this.sections, this.grid, this.note, this.nothing);
    this.grid.addEventListener('click', (event) => this.open(event));
    this.grid.addEventListener('keydown', (event) => { if (['Enter', ' '].includes(event.key) && event.target.matches('.card')) this.open(event); });
  }

  column(column) {
    const part = { ...column, limit: PAGE, list: h('ul', { class: 'cards' }), count: h('span', { class: 'count' }) };
    part.more = h('button', { type: 'button', class: 'more', hidden: true, onclick: () => { part.limit += 100; this.show(this.search); } });
    part.element = h('section', { class: 'column', 'aria-label': column.name, 'data-column': column.statuses[0] },
      h('h3', {}, h('i', { class: `dot status-${column.statuses[0]}` }), column.name, part.count), part.list, part.more);
    return part;
  }

  open(event) {
    const card = event.target.closest('.card');
    if (!card || event.target.closest('button')) return;
    // Otherwise the same key press would also activate the element that the dialog focuses.
    event.preventDefault();
    this.dialog = showTask(this.model, card.dataset.id);
  }

  show(search = '') {
    if (search !== this.search) for (const column of this.columns) column.limit = PAGE;
    this.search = search;
    this.showSections();
    const all = this.model.tasks;
    const byStatus = new Map(this.columns.flatMap((column) => column.statuses.map((status) => [status, column])));
    for (const column of this.columns) column.found = [];
    for (const task of all.values()) {
      if (this.section !== null && (task.section ?? '') !== this.section) continue;
      if (search && !task.haystack.includes(search)) continue;
      byStatus.get(task.status)?.found.push(task);
    }
    const totals = this.model.tallies(this.section ?? undefined);
    for (const column of this.columns) this.showColumn(column, totals);
    const isEmpty = this.model.tasksLoaded && all.size === 0;
    this.nothing.hidden = !isEmpty;
    this.grid.hidden = isEmpty;
    this.note.hidden = !this.model.tasksCapped;
    say(this.note, `Shows and searches ${count(all.size)} tasks only. \`tenure tasks list\` lists all.`);
    if (this.dialog?.isConnected) this.dialog.redraw();
  }

  showColumn(column, totals) {
    const total = column.statuses.reduce((sum, status) => sum + (totals[status] ?? 0), 0);
    column.element.hidden = Boolean(column.isMinor) && total === 0 && column.found.length === 0;
    column.found.sort(column.order);
    const shown = column.found.slice(0, column.limit);
    say(column.count, this.search ? `${count(column.found.length)} of ${count(total)}` : count(total));
    reconcile(column.list, shown, (task) => `${task.id}\n${this.model.role}`, (task) => this.createCard(task), (card, task) => this.updateCard(card, task));
    column.more.hidden = column.found.length <= shown.length;
    say(column.more, `Show more (${count(column.found.length - shown.length)})`);
  }

  createCard(task) {
    return h('li', { class: 'card', tabindex: 0, role: 'button', 'data-id': task.id });
  }

  updateCard(card, task) {
    const unmet = task.status === 'pending' ? this.model.unmet(task) : 0;
    const waits = task.not_before && task.status === 'pending' ? Math.max(0, Math.ceil((Date.parse(task.not_before) - this.model.now()) / 1000)) : 0;
    const lost = this.model.lostClaim(task);
    if (card.task === task && card.unmet === unmet && card.waits === waits && card.lost === lost) return;
    Object.assign(card, { task, unmet, waits, lost });
    mark(card, 'aria-label', brief(`${task.title}, ${STATUS_WORDS[task.status] ?? task.status}`, 200));
    const who = task.claimed_by ?? task.finished_by;
    fill(card,
      h('p', { class: 'card-title', dir: 'auto' }, brief(task.title)),
      who && h('p', { class: 'card-worker' }, h('i', { class: `dot hue-${hue(who)}` }), foreign(brief(who, 60))),
      task.error && task.status !== 'completed' && h('p', { class: 'card-error', dir: 'auto' }, brief(task.error, 160)),
      h('p', { class: 'card-meta' },
        foreign(brief(task.id, 40), { class: 'id' }),
        lost && h('span', { class: 'chip hot' }, lost),
        task.status === 'blocked' && h('span', { class: 'chip hot' }, 'blocked'),
        task.status === 'cancelled' && h('span', { class: 'chip' }, 'cancelled'),
        task.status === 'skipped' && h('span', { class: 'chip' }, 'skipped'),
        task.section && this.section === null && foreign(brief(task.section, 40), { class: 'chip' }),
        unmet > 0 && h('span', { class: 'chip warm' }, `after ${unmet} more`),
        waits > 0 && h('span', { class: 'chip warm' }, `in ${duration(waits)}`),
        task.priority !== 50 && h('span', { class: 'chip' }, `p${task.priority}`),
        task.attempts > 1 && h('span', { class: 'chip' }, `try ${task.attempts}/${task.max_attempts}`),
        ...task.labels.slice(0, 4).map((label) => foreign(brief(label, 30), { class: 'label' })),
        this.model.isAdmin && retryButton(task)));
  }

  showSections() {
    const { sections, tallies, paused } = this.model.snapshot;
    const hasNone = tallies.some((tally) => !tally.section);
    const known = [...sections].sort((one, other) => one.priority - other.priority || one.position - other.position || (one.name < other.name ? -1 : 1));
    const isPlain = known.length === 0 && !paused && !(this.model.isAdmin && tallies.length > 0);
    const entries = isPlain ? [] : [{ key: null, name: 'All sections', paused }, ...known.map((section) => ({ ...section, key: section.name })), ...(hasNone && known.length > 0 ? [{ key: '', name: 'No section' }] : [])];
    if (this.section !== null && !entries.some((entry) => entry.key === this.section)) this.section = null;
    const create = (entry) => {
      const choose = h('button', { type: 'button', class: 'section-name', onclick: () => { this.section = entry.key; this.show(this.search); } });
      return h('div', { class: 'section' }, choose);
    };
    reconcile(this.sections, entries, (entry) => `${entry.key}\n${entry.key === null}`, create, (element, entry) => this.updateSection(element, entry));
  }

  updateSection(element, entry) {
    const isWhole = entry.key === null;
    const text = JSON.stringify([entry, this.section === entry.key, this.model.role, isWhole && this.model.snapshot.paused]);
    if (element.text === text) return;
    element.text = text;
    const choose = element.firstChild;
    mark(choose, 'aria-pressed', this.section === entry.key ? 'true' : 'false');
    mark(element, 'data-paused', entry.paused);
    fill(choose, foreign(brief(entry.name, 40)), entry.open !== undefined && h('span', { class: 'count' }, count(entry.open)), entry.paused && h('span', { class: 'chip warm' }, 'paused'));
    element.replaceChildren(choose);
    if (!this.model.isAdmin) return;
    if (isWhole) element.append(pauseButton('*', this.model.snapshot.paused));
    else if (entry.key !== '') element.append(pauseButton(entry.name, entry.paused));
  }

  tick() {
    for (const column of this.columns) {
      if (column.statuses[0] !== 'pending') continue;
      for (const card of column.list.children) if (card.waits > 0) this.updateCard(card, card.task);
    }
  }
}
