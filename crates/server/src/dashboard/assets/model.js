// The data of the page: the last snapshot, the tasks, the newest events, and the server's time.

import { ask } from './connection.js';
import { hue } from './words.js';

// How many are loaded at the start; later ones come with the stream.
const TASKS_MAX = 20_000;
const TASKS_PAGE = 500;
const EVENTS_FIRST = 4_000;
const EVENTS_MAX = 20_000;
// After a gap in the stream the tasks are loaded again, at most this often.
const RELOAD_MS = 5_000;

// The most important statuses first, in case there are too many tasks for all.
const LOAD_ORDER = ['in_progress', 'review', 'blocked', 'failed', 'pending', 'completed', 'cancelled', 'skipped'];

export class Model {
  constructor(changed) {
    this.changed = changed;
    this.snapshot = null;
    this.receivedAt = 0;
    this.tasks = new Map();
    this.tasksLoaded = false;
    this.tasksCapped = false;
    this.events = [];
    this.eventRevision = 0;
    this.offset = null;
  }

  get role() { return this.snapshot?.role; }

  get isAdmin() { return this.role === 'admin'; }

  /** The server's time of day, in milliseconds. */
  now() { return Date.now() + (this.offset ?? 0); }

  /** The age of the last snapshot in seconds, to be subtracted from its times left. */
  sinceSnapshot() { return (performance.now() - this.receivedAt) / 1000; }

  take(name, value) {
    if (name === 'snapshot') this.takeSnapshot(value);
    else if (name === 'tasks') this.takeTasks(value);
    else if (name === 'events') this.takeEvents(value.events, value.skipped);
  }

  takeSnapshot(snapshot) {
    const isFirst = this.snapshot === null;
    const isRestarted = !isFirst && snapshot.revision < this.snapshot.revision;
    this.snapshot = snapshot;
    // The same order, whichever view is drawn first.
    for (const worker of snapshot.workers) hue(worker.holder);
    this.receivedAt = performance.now();
    this.setClock(Date.parse(snapshot.now) - Date.now());
    if (isFirst || isRestarted) this.load();
    this.changed('snapshot');
  }

  /** The server's time is in whole seconds, rounded down, so the largest difference seen is the best estimate. */
  setClock(offset) {
    const isOther = this.offset === null || Math.abs(offset - this.offset) > 2_000;
    this.offset = isOther ? offset : Math.max(this.offset, offset);
  }

  takeTasks({ tasks, deleted }) {
    for (const task of tasks) this.putTask(task);
    for (const id of deleted) this.tasks.delete(id);
    for (const id of [...tasks.map((task) => task.id), ...deleted]) this.fresh?.add(id);
    this.changed('tasks');
  }

  putTask(task) {
    const words = [task.title.slice(0, 400), task.id, task.section ?? '', task.claimed_by ?? '', task.finished_by ?? '', ...task.labels];
    task.haystack = words.join('\n').toLowerCase();
    task.createdAt = Date.parse(task.created_at);
    task.finishedAt = task.finished_at ? Date.parse(task.finished_at) : 0;
    this.tasks.set(task.id, task);
  }

  takeEvents(events, skipped) {
    this.addEvents(events);
    if (skipped) this.reloadTasksSoon();
    this.changed('events');
  }

  addEvents(events) {
    for (const event of events) {
      if (event.revision <= this.eventRevision) continue;
      event.time = Date.parse(event.at);
      this.events.push(event);
      this.eventRevision = event.revision;
    }
    if (this.events.length > EVENTS_MAX) this.events.splice(0, this.events.length - EVENTS_MAX);
  }

  /** Loads what existed before the stream began. */
  async load() {
    this.tasks.clear();
    this.events = [];
    this.eventRevision = 0;
    const ended = await Promise.allSettled([this.loadTasks(), this.loadEvents()]);
    // The server may not respond, or may require a token first.
    if (ended.some(({ status }) => status === 'rejected')) setTimeout(() => this.load(), RELOAD_MS);
  }

  async loadEvents() {
    const older = (await ask('GET', `/v1/events?last=${EVENTS_FIRST}`)).events;
    const newer = this.events;
    this.events = [];
    this.eventRevision = 0;
    this.addEvents(older);
    this.addEvents(newer);
    this.changed('events');
  }

  /** Loads tasks. Changes that the stream sends meanwhile are newer and win. */
  async loadTasks() {
    if (this.fresh) return;
    this.fresh = new Set();
    const found = new Set();
    try {
      this.tasksCapped = false;
      for (const status of LOAD_ORDER) await this.loadStatus(status, found);
      for (const id of this.tasks.keys()) {
        if (!found.has(id) && !this.fresh.has(id) && !this.tasksCapped) this.tasks.delete(id);
      }
      this.tasksLoaded = true;
    } finally {
      this.fresh = null;
      this.changed('tasks');
    }
  }

  async loadStatus(status, found) {
    for (let after = 0; after !== null && after !== undefined;) {
      if (found.size >= TASKS_MAX) {
        this.tasksCapped = true;
        return;
      }
      const page = await ask('GET', `/v1/tasks?status=${status}&after_age=${after}&limit=${TASKS_PAGE}`);
      for (const task of page.tasks) {
        found.add(task.id);
        if (!this.fresh.has(task.id)) this.putTask(task);
      }
      after = page.next_after_age;
      this.changed('tasks');
    }
  }

  reloadTasksSoon() {
    if (this.reloading) return;
    this.reloading = setTimeout(() => {
      this.reloading = null;
      this.loadTasks().catch(() => this.reloadTasksSoon());
    }, RELOAD_MS);
  }

  /** The number of tasks by status, in all or in one section. */
  tallies(section) {
    const totals = {};
    for (const tally of this.snapshot?.tallies ?? []) {
      if (section !== undefined && (tally.section ?? '') !== section) continue;
      totals[tally.status] = (totals[tally.status] ?? 0) + tally.count;
    }
    return totals;
  }

  /** Why the claim of a task in progress is no longer valid; null if it is. */
  lostClaim(task) {
    if (task.status !== 'in_progress' || !this.snapshot) return null;
    const lost = this.snapshot.lost_claims.find((one) => one.task === task.id && one.token === task.token);
    return lost ? lost.reason : null;
  }

  /** The number of unfinished dependencies of a task. */
  unmet(task) {
    let unmet = 0;
    for (const id of task.depends_on) {
      const other = this.tasks.get(id);
      if (!other) return task.unmet;
      if (other.status !== 'completed' && other.status !== 'skipped') unmet += 1;
    }
    return unmet;
  }
}
