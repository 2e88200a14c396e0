// What an admin may do. These controls are made for admins only: for others they are not there.

import { ask } from './connection.js';
import { confirm, toast } from './dialogs.js';
import { foreign, h } from './dom.js';
import { brief } from './words.js';

const RETRY = new Set(['failed', 'blocked', 'cancelled', 'skipped']);
const CANCEL = new Set(['pending', 'in_progress', 'review', 'blocked']);

const name = (text) => foreign(brief(text, 80), { class: 'name' });

/** Ends somebody's hold, with a reason for the log. */
export function breakButton(lock) {
  const act = async (reason) => {
    await ask('POST', '/v1/locks/break', { resource: lock.resource, token: lock.token, reason });
    return `${lock.resource} is free of ${lock.holder}.`;
  };
  const ask_first = () => confirm({
    title: 'Break this hold?',
    lead: h('p', {}, name(lock.holder), ' loses ', name(lock.resource),
      ` (token ${lock.token}) and is told so. If it is still at work, make sure that two at once do no harm.`),
    field: { label: 'Reason, for the log', placeholder: 'its machine is gone', missing: 'A reason is needed: others will ask.' },
    button: 'Break', danger: true, act,
  });
  return h('button', { type: 'button', class: 'small danger-quiet', 'data-action': 'break', 'aria-label': `Break ${lock.resource}`, onclick: ask_first }, 'Break…');
}

async function post(path, done) {
  try {
    await ask('POST', path, {});
    toast(done);
  } catch (problem) {
    toast(problem.message || 'The server asks you to sign in again.', 'bad');
  }
}

const taskPath = (task, verb) => `/v1/tasks/${encodeURIComponent(task.id)}/${verb}`;

/** Has a task done after all, where that can be. */
export function retryButton(task) {
  if (!RETRY.has(task.status)) return null;
  const act = (event) => {
    event.stopPropagation();
    post(taskPath(task, 'retry'), `${task.id} is to be done again.`);
  };
  return h('button', { type: 'button', class: 'small', 'data-action': 'retry', 'aria-label': `Retry ${task.id}`, onclick: act }, 'Retry');
}

/** Says that a task is no longer wanted, where that can be. */
export function cancelButton(task) {
  if (!CANCEL.has(task.status)) return null;
  const act = async () => {
    await ask('POST', taskPath(task, 'cancel'), {});
    return `${task.id} is cancelled.`;
  };
  const ask_first = () => confirm({
    title: 'Cancel this task?',
    lead: h('p', {}, name(task.title), task.claimed_by && ' is being worked on by ', task.claimed_by && name(task.claimed_by),
      task.claimed_by ? ', who will be told that it is lost.' : ' will not be handed out any more.'),
    button: 'Cancel the task', danger: true, act,
  });
  return h('button', { type: 'button', class: 'small danger-quiet', 'data-action': 'cancel', 'aria-label': `Cancel ${task.id}`, onclick: ask_first }, 'Cancel…');
}

/** Pauses or resumes a section; `*` is everything. */
export function pauseButton(section, isPaused) {
  const verb = isPaused ? 'resume' : 'pause';
  const what = section === '*' ? 'Everything' : section;
  const done = isPaused ? `${what} is handed out again.` : `${what} is paused: nothing of it is handed out.`;
  const act = () => post(`/v1/sections/${encodeURIComponent(section)}/${verb}`, done);
  const words = section === '*' ? `${isPaused ? 'Resume' : 'Pause'} all` : (isPaused ? 'Resume' : 'Pause');
  return h('button', { type: 'button', class: 'small', 'data-action': verb, 'aria-label': `${words} ${section === '*' ? 'sections' : section}`, onclick: act }, words);
}
