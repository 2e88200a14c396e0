// The page of a task: what it is, its attempts and their output, notes, what it depends on, its history.

import { format, toTask, toWorker } from './addresses.js';
import { ask } from './connection.js';
import { copyAddressButton, copyButton } from './copy.js';
import { toast } from './dialogs.js';
import { empty, fill, foreign, h, nameLink, say, when } from './dom.js';
import { editButton } from './edit-task.js';
import { EventList } from './event-list.js';
import { drawGraph } from './graph.js';
import { Output } from './output.js';
import { VERBS, verbButton } from './task-actions.js';
import { STATUS_WORDS, brief, duration, hue } from './words.js';

const TEXT_MAX = 20_000;
const HISTORY_FIRST = 50;

const panel = (title, ...children) => h('section', { class: 'panel', 'aria-label': title }, h('div', { class: 'panel-head' }, h('h2', {}, title)), ...children);
const block = (value) => h('pre', { class: 'block', dir: 'auto', tabindex: 0 }, brief(typeof value === 'string' ? value : JSON.stringify(value, null, 2), TEXT_MAX));
const worker = (label) => h('span', { class: 'who' }, h('i', { class: `dot hue-${hue(label)}` }), nameLink(toWorker(label), brief(label, 200)));
const words = (values) => h('span', { class: 'words' }, ...values.map((value) => foreign(brief(value, 200), { class: 'label' })));

export class TaskPage {
  constructor(model) {
    this.model = model;
    this.head = h('div', { class: 'page-head' });
    this.why = h('ul', { class: 'why' });
    this.texts = h('div', { class: 'texts' });
    this.facts = h('dl', { class: 'facts-list' });
    this.attempts = h('div', {});
    this.output = new Output();
    this.outputPanel = panel('Output', this.output.element);
    this.notes = h('div', { class: 'notes' });
    this.graph = h('div', {});
    this.history = new EventList(model, { first: HISTORY_FIRST, nothing: h('p', { class: 'rest' }, 'No events are kept any more.') });
    this.body = h('div', { class: 'detail' },
      h('div', { class: 'detail-main' }, panel('Task', this.head, this.why, this.texts), panel('Attempts', this.attempts), this.outputPanel,
        panel('Dependencies', this.graph), panel('History', this.history.element)),
      h('div', { class: 'detail-side' }, panel('Details', this.facts), panel('Notes', this.notes, this.noteForm())));
    this.nothing = h('div', { class: 'panel', hidden: true });
    this.element = h('div', { class: 'task' }, this.body, this.nothing);
  }

  noteForm() {
    const text = h('textarea', { id: 'note-text', rows: 2, maxlength: 8192, required: true });
    const add = async (event) => {
      event.preventDefault();
      if (!text.value.trim()) return;
      await ask('POST', `/v1/tasks/${encodeURIComponent(this.id)}/notes`, { text: text.value })
        .then(() => { text.value = ''; toast('The note is added.'); }, (problem) => toast(problem.message || 'Sign in again.', 'bad'));
    };
    this.form = h('form', { class: 'note-form', hidden: true, 'data-role': 'note', onsubmit: add },
      h('label', { for: 'note-text' }, 'A note for the next worker'), text, h('button', { type: 'submit', class: 'small' }, 'Add note'));
    return this.form;
  }

  /** Shows the task with this id; loads it again when it changed. */
  show(search, filter, id) {
    const isOther = id !== this.id;
    if (isOther) {
      this.id = id;
      this.task = null;
      this.shownAttempt = null;
      this.output.stop();
      fill(this.graph);
      this.body.hidden = true;
    }
    const isNews = isOther || this.model.touched.has(id) || this.gaps !== this.model.gaps || this.role !== this.model.role;
    this.gaps = this.model.gaps;
    this.role = this.model.role;
    this.history.setFilter({ resource: `task:${id}` });
    this.history.show();
    if (isNews) this.load(id);
    else if (this.task) this.tick();
  }

  leave() {
    this.output.stop();
    this.id = null;
  }

  async load(id) {
    const path = `/v1/tasks/${encodeURIComponent(id)}`;
    const answer = await ask('GET', path).catch((problem) => ({ problem }));
    if (id !== this.id) return;
    if (answer.problem) {
      this.body.hidden = true;
      this.nothing.hidden = false;
      fill(this.nothing, empty('No such task', answer.problem.message || 'Sign in again.'),
        h('p', { class: 'center' }, h('a', { href: format({ view: 'tasks' }) }, 'All tasks')));
      return;
    }
    this.task = this.model.putTask(answer.task);
    this.waitsFor = answer.waits_for;
    this.body.hidden = false;
    this.nothing.hidden = true;
    this.draw();
    const graph = await ask('GET', `${path}/graph`).catch(() => null);
    if (id === this.id) drawGraph(this.graph, graph);
  }

  draw() {
    const { task } = this;
    const lost = this.model.lostClaim(task);
    document.title = `${brief(task.title, 60)} · tenure`;
    this.elapsed = h('span', { class: 'elapsed' });
    fill(this.head,
      h('h2', { class: 'task-title', dir: 'auto' }, brief(task.title, 2_000)),
      h('p', { class: 'task-state' }, h('i', { class: `dot status-${task.status}` }), h('b', {}, STATUS_WORDS[task.status] ?? task.status), this.elapsed,
        lost && h('span', { class: 'chip hot' }, lost),
        h('span', { class: 'with-copy' }, h('code', {}, foreign(task.id)), copyButton(task.id, 'id'))),
      h('div', { class: 'page-actions' }, ...Object.keys(VERBS).map((verb) => verbButton(this.model, task, verb)),
        this.model.isAdmin && editButton(task), copyAddressButton()));
    fill(this.why, ...this.waitsFor.map((reason) => h('li', {}, foreign(brief(reason, 300)))));
    const texts = [['Error', task.error], ['Feedback', task.feedback], ['Description', task.description], ['Result', task.result], ['Payload', task.payload]];
    fill(this.texts, ...texts.filter(([, value]) => value !== null && value !== undefined && value !== '').flatMap(([name, value]) => [h('h3', {}, name), block(value)]));
    fill(this.facts, ...this.rows(task).filter(([, value]) => value).flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
    this.drawAttempts(task.tries ?? []);
    const notes = task.notes ?? [];
    fill(this.notes, ...(notes.length > 0 ? notes.map((note) => h('div', { class: 'note' },
      h('p', { class: 'note-head' }, worker(note.by), when(note.at)), h('p', { class: 'note-text', dir: 'auto' }, brief(note.text, 9_000))))
      : [h('p', { class: 'rest' }, 'No notes yet.')]));
    this.form.hidden = !this.model.canWork;
    this.tick();
  }

  rows(task) {
    return [
      ['Section', task.section && nameLink(format({ view: 'tasks', filter: { section: task.section } }), brief(task.section, 200))],
      ['Worker', task.claimed_by && worker(task.claimed_by)],
      ['Finished by', task.finished_by && worker(task.finished_by)],
      ['Priority', String(task.priority)],
      ['Attempts', `${task.attempts} of ${task.max_attempts}${task.recoveries ? `, lost ${task.recoveries} times` : ''}`],
      ['Labels', task.labels.length > 0 && words(task.labels)],
      ['Files', task.files.length > 0 && words(task.files)],
      ['After', task.depends_on.length > 0 && h('span', { class: 'words' }, ...task.depends_on.map((id) => nameLink(toTask(id), brief(id, 120), { class: 'label' })))],
      ['Time limit', task.timeout_seconds && duration(task.timeout_seconds)],
      ['Not before', task.not_before && when(task.not_before)],
      ['Added', when(task.created_at)],
      ['Taken', task.claimed_at && when(task.claimed_at)],
      ['Lease ends', task.expires_at && when(task.expires_at)],
      ['Finished', task.finished_at && when(task.finished_at)],
      ['Token', task.token && String(task.token)],
      ['Key', task.key && h('span', { class: 'with-copy' }, foreign(brief(task.key, 200)), copyButton(task.key, 'key'))],
    ];
  }

  drawAttempts(tries) {
    const newest = [...tries].reverse();
    const withOutput = newest.find((one) => one.has_output);
    const wanted = this.shownAttempt ?? withOutput?.number ?? null;
    this.outputPanel.hidden = wanted === null;
    const followed = `${this.id}\n${wanted}\n${newest[0]?.ended_at ?? ''}`;
    if (wanted !== null && followed !== this.followed) this.output.follow(this.id, wanted);
    this.followed = wanted === null ? null : followed;
    const choose = (one) => { this.shownAttempt = one.number; this.drawAttempts(tries); this.outputPanel.scrollIntoView({ block: 'nearest' }); };
    fill(this.attempts, newest.length === 0 ? h('p', { class: 'rest' }, 'It was never claimed.') : h('ol', { class: 'attempts' }, ...newest.map((one) => {
      const length = h('span', { class: 'since', 'data-from': one.ended_at ? null : one.claimed_at },
        duration(one.seconds ?? (Date.parse(one.ended_at ?? new Date(this.model.now()).toISOString()) - Date.parse(one.claimed_at)) / 1000));
      const details = [one.error, one.host && `on ${one.host}`, one.worktree, one.branch && `branch ${one.branch}`, one.rescue && `kept as ${one.rescue}`].filter(Boolean);
      return h('li', { class: 'attempt', 'data-outcome': one.outcome ?? 'running' },
        h('span', { class: 'number' }, `#${one.number}`), worker(one.by),
        h('span', { class: 'outcome' }, one.outcome ?? 'running'), length, when(one.claimed_at),
        one.has_output && h('button', { type: 'button', class: 'small', 'aria-pressed': one.number === wanted ? 'true' : 'false', onclick: () => choose(one) }, 'Output'),
        details.length > 0 && h('p', { class: 'attempt-more', dir: 'auto' }, foreign(brief(details.join('; '), 1_000))));
    })));
  }

  tick() {
    const { task } = this;
    if (!task || !this.elapsed) return;
    const now = this.model.now();
    const length = task.status === 'in_progress' ? now - task.claimedAt : 0;
    say(this.elapsed, length > 0 ? `for ${duration(length / 1000)}` : '');
    for (const element of this.attempts.querySelectorAll('[data-from]')) say(element, duration((now - Date.parse(element.dataset.from)) / 1000));
  }
}
