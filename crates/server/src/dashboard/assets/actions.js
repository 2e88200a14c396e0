// The actions of admins. The page creates these controls only for the role `admin`.

import { ask } from './connection.js';
import { confirm, toast } from './dialogs.js';
import { foreign, h } from './dom.js';
import { brief } from './words.js';

const RETRY = new Set(['failed', 'blocked', 'cancelled', 'skipped']);
const CANCEL = new Set(['pending', 'in_progress', 'review', 'blocked']);

const name = (text) => foreign(brief(text, 80), { class: 'name' });

/** A button that breaks a hold, with a reason for the audit log. */
export function breakButton(lock) {
  const act = async (reason) => {
    await ask('POST', '/v1/locks/break', { resource: lock.resource, token: lock.token, reason });
    return `Broke the hold of ${lock.holder} on ${lock.resource}.`;
  };
  const ask_first = () => confirm({
    title: 'Break this hold?',
    lead: h('p', {}, name(lock.holder), ' loses ', name(lock.resource),
      ` (token ${lock.token}) and is notified. If it is still working, make sure that two holders at once do no harm.`),
    field: { label: 'Reason, for the audit log', placeholder: 'its machine is gone', missing: 'A reason is required for the audit log.' },
    button: 'Break', danger: true, act,
  });
  return h('button', { type: 'button', class: 'small danger-quiet', 'data-action': 'break', 'aria-label': `Break ${lock.resource}`, onclick: ask_first }, 'Break…');
}

async function post(path, done) {
  try {
    await ask('POST', path, {});
    toast(done);
  } catch (problem) {
    toast(problem.message || 'Sign in again.', 'bad');
  }
}

const taskPath = (task, verb) => `/v1/tasks/${encodeURIComponent(task.id)}/${verb}`;

/** A button that retries a task, if its status allows it. */
export function retryButton(task) {
  if (!RETRY.has(task.status)) return null;
  const act = (event) => {
    event.stopPropagation();
    post(taskPath(task, 'retry'), `${task.id} is pending again.`);
  };
  return h('button', { type: 'button', class: 'small', 'data-action': 'retry', 'aria-label': `Retry ${task.id}`, onclick: act }, 'Retry');
}

/** A button that cancels a task, if its status allows it. */
export function cancelButton(task) {
  if (!CANCEL.has(task.status)) return null;
  const act = async () => {
    await ask('POST', taskPath(task, 'cancel'), {});
    return `${task.id} is cancelled.`;
  };
  const ask_first = () => confirm({
    title: 'Cancel this task?',
    lead: h('p', {}, name(task.title), task.claimed_by && ' is in progress by ', task.claimed_by && name(task.claimed_by),
      task.claimed_by ? ', which loses it.' : ' can then no longer be claimed.'),
    button: 'Cancel the task', danger: true, act,
  });
  return h('button', { type: 'button', class: 'small danger-quiet', 'data-action': 'cancel', 'aria-label': `Cancel ${task.id}`, onclick: ask_first }, 'Cancel…');
}

/** A button that pauses or resumes a section; `*` is everything. */
export function pauseButton(section, isPaused) {
  const verb = isPaused ? 'resume' : 'pause';
  const what = section === '*' ? 'Everything' : section;
  const done = isPaused ? `${what}: tasks can be claimed again.` : `${what} is paused: its tasks cannot be claimed.`;
  const act = () => post(`/v1/sections/${encodeURIComponent(section)}/${verb}`, done);
  const words = section === '*' ? `${isPaused ? 'Resume' : 'Pause'} all` : (isPaused ? 'Resume' : 'Pause');
  return h('button', { type: 'button', class: 'small', 'data-action': verb, 'aria-label': `${words} ${section === '*' ? 'sections' : section}`, onclick: act }, words);
}
