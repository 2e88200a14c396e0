// The data of the page: the last snapshot, the tasks, the newest events, and the server's time.

import { ask } from './connection.js';
import { NO_SECTION } from './task-filter.js';
import { hue } from './words.js';

// How many events are loaded at the start; later ones come with the stream.
const EVENTS_FIRST = 4_000;
const EVENTS_MAX = 20_000;
// How many tasks are remembered that no list shows any more.
const TASKS_REMEMBERED = 20_000;
// After a gap in the stream everything is loaded again, at most this often.
const RELOAD_MS = 5_000;

export class Model {
  constructor(changed) {
    this.changed = changed;
    this.snapshot = null;
    this.receivedAt = 0;
    this.tasks = new Map();
    this.queries = new Set();
    this.events = [];
    this.eventRevision = 0;
    this.offset = null;
    // The tasks that changed since the last drawing, and how often changes were missed.
    this.touched = new Set();
    this.gaps = 0;
  }

  get role() { return this.snapshot?.role; }

  get isAdmin() { return this.role === 'admin'; }

  get canWork() { return this.role === 'admin' || this.role === 'work'; }

  /** The server's time of day, in milliseconds. */
  now() { return Date.now() + (this.offset ?? 0); }

  /** The age of the last snapshot in seconds, to be subtracted from its times left. */
  sinceSnapshot() { return (performance.now() - this.receivedAt) / 1000; }

  take(name, value) {
    if (name === 'snapshot') this.takeSnapshot(value);
    else if (name === 'tasks') this.takeTasks(value);
    else if (name === 'events') this.takeEvents(value.events, value.skipped);
    else if (name === 'gap') this.takeGap();
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
    for (const query of this.queries) query.patch(tasks, deleted);
    for (const id of [...tasks.map((task) => task.id), ...deleted]) this.touched.add(id);
    this.changed('tasks');
  }

  /** Remembers a task, with what is needed to search and sort it. */
  putTask(task) {
    const words = [task.title, task.id, task.description ?? '', task.claimed_by ?? '', task.finished_by ?? '', ...task.labels];
    task.haystack = words.join('\n').toLowerCase();
    task.createdAt = Date.parse(task.created_at);
    task.finishedAt = task.finished_at ? Date.parse(task.finished_at) : 0;
    task.claimedAt = task.claimed_at ? Date.parse(task.claimed_at) : 0;
    this.tasks.delete(task.id);
    this.tasks.set(task.id, task);
    if (this.tasks.size > TASKS_REMEMBERED) this.forgetTasks();
    return task;
  }

  /** Forgets the tasks that were not seen for longest and that no list shows. */
  forgetTasks() {
    let most = this.tasks.size / 2;
    for (const id of this.tasks.keys()) {
      if (most <= 0) return;
      most -= 1;
      if (![...this.queries].some((query) => query.found.has(id))) this.tasks.delete(id);
    }
  }

  takeEvents(events, skipped) {
    this.addEvents(events);
    if (skipped) this.takeGap();
    else this.changed('events');
  }

  /** Events are missing: more happened than is kept or sent. */
  takeGap() {
    this.hasGap = true;
    this.reloadSoon();
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
    this.hasOldest = false;
    this.hasGap = false;
    for (const query of this.queries) query.reload();
    // The server may not respond, or may require a token first.
    await this.loadEvents().catch(() => setTimeout(() => this.load(), RELOAD_MS));
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

  /** Loads the events before the oldest known one, once at a time, up to a bound. */
  async loadOlderEvents() {
    const oldest = this.events[0]?.revision;
    if (this.loadingOlder || this.hasOldest || !oldest || this.events.length >= EVENTS_MAX) return;
    this.loadingOlder = true;
    try {
      const { events } = await ask('GET', `/v1/events?before=${oldest}&last=${EVENTS_FIRST}`);
      for (const event of events) event.time = Date.parse(event.at);
      this.hasOldest = events.length < EVENTS_FIRST;
      if (this.events[0]?.revision === oldest) this.events.unshift(...events);
      this.changed('events');
    } catch {
      this.hasOldest = true;
    } finally {
      this.loadingOlder = false;
    }
  }

  reloadSoon() {
    if (this.reloading) return;
    this.reloading = setTimeout(() => {
      this.reloading = null;
      this.gaps += 1;
      for (const query of this.queries) query.reload();
      this.changed('tasks');
    }, RELOAD_MS);
  }

  /** The number of tasks by status, in all or in one section, as the server counts them. */
  tallies(section = '') {
    const totals = {};
    for (const tally of this.snapshot?.tallies ?? []) {
      if (section && (tally.section ?? NO_SECTION) !== section) continue;
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
