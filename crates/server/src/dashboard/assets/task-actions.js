// What people do to tasks. The page creates these controls only for roles that may use them; the server
// decides.

import { ask } from './connection.js';
import { confirm, toast } from './dialogs.js';
import { foreign, h } from './dom.js';
import { brief } from './words.js';

const name = (text) => foreign(brief(text, 80), { class: 'name' });

/**
 * Each verb: from which statuses it leads on, which role it needs, and its words. `lead` is what the
 * confirmation says about one task; a verb without it needs none.
 */
export const VERBS = {
  approve: { word: 'Approve', from: ['review'], role: 'work', done: 'completed' },
  reject: {
    word: 'Reject', from: ['review'], role: 'work', done: 'pending again',
    lead: (task) => [name(task.title), ' goes back to pending. Its next worker is told what to change.'],
    field: { label: 'What to change', placeholder: 'the second test is missing', missing: 'Say what to change.' },
    body: (feedback) => ({ feedback }),
  },
  retry: { word: 'Retry', from: ['failed', 'blocked', 'cancelled', 'skipped'], role: 'admin', done: 'pending again' },
  skip: {
    word: 'Skip', from: ['pending', 'blocked', 'failed'], role: 'admin', done: 'skipped',
    lead: (task) => [name(task.title), ' is not done. Tasks that wait for it can go on.'],
  },
  cancel: {
    word: 'Cancel', from: ['pending', 'in_progress', 'review', 'blocked'], role: 'admin', done: 'cancelled', isDanger: true,
    lead: (task) => (task.claimed_by
      ? [name(task.title), ' is in progress by ', name(task.claimed_by), ', which loses it.']
      : [name(task.title), ' can then no longer be claimed.']),
  },
};

/** Whether the role of this page may use a verb. */
export const mayUse = (model, verb) => (VERBS[verb].role === 'work' ? model.canWork : model.isAdmin);

/** Sends a verb for one task. */
export const send = (task, verb, text) => ask('POST', `/v1/tasks/${encodeURIComponent(task.id)}/${verb}`, VERBS[verb].body?.(text) ?? {});

/** A button for a verb, if role and status allow it. */
export function verbButton(model, task, verb) {
  const { word, from, done, lead, field, isDanger } = VERBS[verb];
  if (!mayUse(model, verb) || !from.includes(task.status)) return null;
  const act = async (text) => {
    await send(task, verb, text);
    return `${brief(task.id, 60)} is ${done}.`;
  };
  const atOnce = () => act().then((said) => toast(said), (problem) => toast(problem.message || 'Sign in again.', 'bad'));
  const askFirst = () => confirm({
    title: `${word} this task?`, lead: h('p', {}, ...lead(task)), field,
    button: verb === 'cancel' ? 'Cancel the task' : word, danger: Boolean(isDanger), act,
  });
  const onclick = (event) => {
    event.stopPropagation();
    if (lead) askFirst();
    else atOnce();
  };
  return h('button', {
    type: 'button', class: `small${isDanger ? ' danger-quiet' : ''}`, 'data-action': verb, 'aria-label': `${word} ${brief(task.id, 80)}`, onclick,
  }, lead ? `${word}…` : word);
}
