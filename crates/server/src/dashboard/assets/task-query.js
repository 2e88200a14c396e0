// The tasks that meet some conditions: loaded a page at a time, and kept up to date by the stream.

import { ask } from './connection.js';
import { admits, parameters } from './task-filter.js';

const PAGE = 200;
// With conditions that the server has to look for, a page may have few tasks and not be the last.
const EMPTY_PAGES_MAX = 20;
// How many of the tasks that were shown are loaded again at once.
const RELOADED_MAX = 1_000;

export class TaskQuery {
  /** @param order `oldest` or `newest` first. */
  constructor(model, filter, order) {
    this.model = model;
    this.filter = filter;
    this.order = order;
    this.begin();
    model.queries.add(this);
  }

  begin() {
    this.found = new Map();
    this.next = null;
    // When the last task that was loaded was added.
    this.edge = Infinity;
    this.isComplete = false;
    this.hasLoaded = false;
    this.error = null;
    this.generation = (this.generation ?? 0) + 1;
  }

  /** No longer follows changes. */
  close() {
    this.generation += 1;
    this.model.queries.delete(this);
  }

  /** Loads again from the start, after changes were missed. What was found is shown until then. */
  async reload() {
    const before = this.found;
    const wanted = Math.min(Math.max(1, before.size), RELOADED_MAX);
    this.begin();
    const { generation, found } = this;
    this.found = before;
    this.incoming = found;
    let isGood = true;
    while (isGood && found.size < wanted && !this.isComplete) isGood = await this.load(found);
    if (generation !== this.generation) return;
    this.incoming = null;
    if (isGood) this.found = found;
    this.model.changed('tasks');
  }

  /** Loads the next page with something in it. */
  async more() {
    if (this.loading || this.isComplete) return;
    for (let page = 0; page < EMPTY_PAGES_MAX && !this.isComplete; page += 1) {
      const before = this.found.size;
      if (!(await this.load(this.found)) || this.found.size > before) return;
    }
  }

  async load(found) {
    const { generation } = this;
    const asked = parameters(this.filter, this.model.now());
    asked.set('order', this.order);
    asked.set('limit', PAGE);
    if (this.next !== null) asked.set(this.order === 'newest' ? 'before_age' : 'after_age', this.next);
    this.loading = true;
    this.fresh = new Set();
    try {
      const page = await ask('GET', `/v1/tasks?${asked}`);
      if (generation !== this.generation) return false;
      for (const task of page.tasks) {
        // What the stream sent meanwhile is newer.
        if (!this.fresh.has(task.id)) found.set(task.id, this.model.putTask(task));
      }
      this.edge = page.tasks.at(-1)?.createdAt ?? this.edge;
      this.next = page.next_before_age ?? page.next_after_age;
      this.isComplete = this.next === null;
      this.hasLoaded = true;
      this.error = null;
      return true;
    } catch (problem) {
      this.error = problem.message;
      return false;
    } finally {
      if (generation === this.generation) {
        this.loading = false;
        this.fresh = null;
      }
      this.model.changed('tasks');
    }
  }

  /** Takes changed and deleted tasks from the stream. */
  patch(tasks, deleted) {
    for (const found of [this.found, this.incoming]) {
      if (!found) continue;
      for (const task of tasks) this.patchOne(found, task);
      for (const id of deleted) found.delete(id);
    }
    for (const id of [...tasks.map((task) => task.id), ...deleted]) this.fresh?.add(id);
  }

  patchOne(found, task) {
    if (!admits(task, this.filter, this.model.now())) {
      found.delete(task.id);
      return;
    }
    if (found.has(task.id) || !this.isBeyond(task)) found.set(task.id, task);
  }

  /**
   * Whether an unknown task is most likely on a page that was not loaded yet. A task that has just come
   * to a status is shown with the others of that status, wherever it would be.
   */
  isBeyond(task) {
    if (this.isComplete) return false;
    if (this.order === 'oldest') return task.status === 'pending';
    return !this.filter.status && task.createdAt < this.edge;
  }
}
