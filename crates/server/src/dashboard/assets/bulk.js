// One action on many tasks: one confirmation, then one request after another, and what became of each.

import { toTask } from './addresses.js';
import { confirm, open, toast } from './dialogs.js';
import { h, nameLink, say } from './dom.js';
import { VERBS, mayUse, send } from './task-actions.js';
import { brief, count } from './words.js';

/** How many tasks one action changes at most. */
export const BULK_MAX = 1_000;
// How many requests are under way at once.
const AT_ONCE = 4;
const LISTED_MAX = 200;

/** The buttons for these selected tasks; `done` is called when an action has ended. */
export function bulkButtons(model, tasks, done) {
  return Object.entries(VERBS).filter(([verb]) => verb !== 'reject' && mayUse(model, verb)).map(([verb, { word, from, isDanger }]) => {
    const fit = tasks.filter((task) => from.includes(task.status));
    return fit.length > 0 && h('button', {
      type: 'button', class: `small${isDanger ? ' danger-quiet' : ''}`, 'data-action': `bulk-${verb}`,
      onclick: () => askOnce(verb, fit, tasks.length - fit.length, done),
    }, `${word} ${count(fit.length)}…`);
  });
}

function askOnce(verb, fit, others, done) {
  const { word, isDanger } = VERBS[verb];
  const tasks = fit.slice(0, BULK_MAX);
  const worked = tasks.filter((task) => task.claimed_by).length;
  const noun = tasks.length === 1 ? 'task' : 'tasks';
  confirm({
    title: `${word} ${count(tasks.length)} ${noun}?`,
    lead: h('div', {},
      h('p', {}, tasks.slice(0, 3).map((task) => brief(task.title, 60)).join(', '), tasks.length > 3 ? ` and ${count(tasks.length - 3)} more.` : '.'),
      worked > 0 && h('p', {}, `${count(worked)} of them are in progress: their workers lose them.`),
      others > 0 && h('p', {}, `${count(others)} selected ${others === 1 ? 'task has' : 'tasks have'} another status and stay as they are.`),
      fit.length > BULK_MAX && h('p', {}, `Only the first ${count(BULK_MAX)} are changed at once.`)),
    button: verb === 'cancel' ? `Cancel ${count(tasks.length)} ${noun}` : `${word} ${count(tasks.length)} ${noun}`,
    danger: Boolean(isDanger),
    act: async () => {
      // The dialog closes at once; progress and outcome have one of their own.
      run(verb, tasks).finally(done);
      return null;
    },
  });
}

async function run(verb, tasks) {
  const { done } = VERBS[verb];
  const outcomes = [];
  const progress = h('p', { role: 'status', 'aria-live': 'polite' });
  const refused = h('ul', { class: 'outcomes' });
  const dialog = open(`${VERBS[verb].word} ${count(tasks.length)} tasks`, h('div', { class: 'bulk' }, progress, refused), { wide: true });
  const show = () => {
    const failures = outcomes.filter((one) => one.error);
    say(progress, `${count(outcomes.length - failures.length)} of ${count(tasks.length)} ${done}${failures.length > 0 ? `, ${count(failures.length)} refused` : ''}${outcomes.length < tasks.length ? '…' : '.'}`);
  };
  const add = (outcome) => {
    outcomes.push(outcome);
    show();
    if (refused.childElementCount < LISTED_MAX) {
      refused.append(h('li', { class: outcome.error ? 'bad' : 'good' },
        nameLink(toTask(outcome.task.id), brief(outcome.task.title, 80)), ': ', outcome.error ?? done));
    }
  };
  show();
  const rest = [...tasks];
  const worker = async () => {
    while (rest.length > 0 && dialog.isConnected) {
      const task = rest.shift();
      const error = await send(task, verb).then(() => null, (problem) => problem.message || 'Sign in again.');
      add({ task, error });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  if (rest.length > 0) toast(`Stopped: ${count(rest.length)} tasks stay as they are.`, 'bad');
}
