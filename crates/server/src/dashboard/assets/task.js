// The dialog with all details of one task.

import { cancelButton, retryButton } from './actions.js';
import { ask } from './connection.js';
import { open } from './dialogs.js';
import { fill, foreign, h } from './dom.js';
import { STATUS_WORDS, brief, duration, moment } from './words.js';

const TEXT_MAX = 20_000;

const text = (value) => foreign(brief(value, 2_000));
const list = (values) => values.length > 0 && h('span', { class: 'words' }, ...values.map((value) => foreign(brief(value, 120), { class: 'label' })));
const block = (value) => h('pre', { class: 'block', dir: 'auto', tabindex: 0 }, brief(typeof value === 'string' ? value : JSON.stringify(value, null, 2), TEXT_MAX));

function rows(task, lost) {
  return [
    ['Section', task.section && text(task.section)],
    ['Worker', task.claimed_by && text(task.claimed_by)],
    ['Claim', lost && text(lost)],
    ['Token', task.token && String(task.token)],
    ['Priority', String(task.priority)],
    ['Attempts', `${task.attempts} of ${task.max_attempts}${task.recoveries ? `, lost ${task.recoveries} times` : ''}`],
    ['Labels', list(task.labels)],
    ['Files', list(task.files)],
    ['After', list(task.depends_on)],
    ['Time limit', task.timeout_seconds && duration(task.timeout_seconds)],
    ['Not before', task.not_before && moment(task.not_before)],
    ['Added', moment(task.created_at)],
    ['Taken', task.claimed_at && moment(task.claimed_at)],
    ['Finished', task.finished_at && moment(task.finished_at)],
    ['Finished by', task.finished_by && text(task.finished_by)],
    ['Error', task.error && block(task.error)],
    ['Feedback', task.feedback && block(task.feedback)],
    ['Description', task.description && block(task.description)],
    ['Payload', task.payload !== null && block(task.payload)],
    ['Result', task.result !== null && block(task.result)],
  ].filter(([, value]) => value);
}

export function showTask(model, id) {
  const body = h('div', { class: 'task' });
  const draw = () => {
    const task = model.tasks.get(id);
    if (!task) return fill(body, h('p', {}, 'This task was deleted.'));
    const buttons = model.isAdmin && [retryButton(task), cancelButton(task)].filter(Boolean);
    return fill(body,
      h('p', { class: 'task-title', dir: 'auto' }, brief(task.title, 2_000)),
      h('p', { class: 'task-state' }, h('i', { class: `dot status-${task.status}` }), STATUS_WORDS[task.status] ?? task.status, ' · ', h('code', {}, foreign(task.id))),
      why,
      h('dl', {}, ...rows(task, model.lostClaim(task)).flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
      history,
      buttons && buttons.length > 0 && h('div', { class: 'buttons' }, ...buttons));
  };
  const why = h('ul', { class: 'why' });
  const history = h('dl', { class: 'history' });
  draw();
  const dialog = open('Task', body, { wide: true });
  dialog.redraw = draw;
  if (model.tasks.get(id)?.status === 'pending') explain(id, why);
  remember(id, history);
  return dialog;
}

/** What a pending task waits for. */
async function explain(id, why) {
  const answer = await ask('GET', `/v1/tasks/${encodeURIComponent(id)}/why`).catch(() => null);
  const reasons = answer?.why ?? answer?.reasons ?? [];
  fill(why, ...reasons.map((reason) => h('li', {}, foreign(brief(reason, 300)))));
}

/** How the tries of a task ended, and what was noted about it. */
async function remember(id, history) {
  const answer = await ask('GET', `/v1/tasks/${encodeURIComponent(id)}`).catch(() => null);
  const tries = (answer?.task?.tries ?? []).map((one) => [`Try ${one.number}`, text(tried(one))]);
  const notes = (answer?.task?.notes ?? []).map((note) => ['Note', [text(`${note.by}, ${moment(note.at)}`), block(note.text)]]);
  fill(history, ...[...tries, ...notes].flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, ...[value].flat())]));
}

function tried(one) {
  const end = one.outcome ? `${one.outcome} ${moment(one.ended_at)}` : `since ${moment(one.claimed_at)}`;
  const details = [one.error, one.worktree, one.branch, one.rescue].filter(Boolean);
  return `${one.by}: ${end}${details.length > 0 ? ` (${details.join('; ')})` : ''}`;
}
