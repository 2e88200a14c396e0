// The form that changes a task's fields.

import { ask } from './connection.js';
import { open, toast } from './dialogs.js';
import { h } from './dom.js';
import { brief } from './words.js';

const FIELDS = [
  ['title', 'Title', (id) => h('input', { id, required: true, maxlength: 1000 })],
  ['description', 'Description', (id) => h('textarea', { id, rows: 6, maxlength: 100000 })],
  ['section', 'Section', (id) => h('input', { id, maxlength: 1024, spellcheck: false })],
  ['priority', 'Priority (0 to 100, lower goes first)', (id) => h('input', { id, type: 'number', min: 0, max: 100, required: true })],
  ['max_attempts', 'Largest number of attempts', (id) => h('input', { id, type: 'number', min: 1, max: 1000000, required: true })],
];

/** A button that opens the form; for admins. */
export function editButton(task) {
  return h('button', { type: 'button', class: 'small', 'data-action': 'edit', 'aria-label': `Edit ${brief(task.id, 80)}`, onclick: () => edit(task) }, 'Edit…');
}

function edit(task) {
  const inputs = {};
  const rows = FIELDS.flatMap(([name, words, create]) => {
    const input = create(`edit-${name}`);
    input.value = task[name] ?? '';
    inputs[name] = input;
    return [h('label', { for: `edit-${name}` }, words), input];
  });
  const error = h('p', { class: 'error', role: 'alert' });
  const submit = h('button', { type: 'submit', class: 'primary' }, 'Save');
  const save = async (event) => {
    event.preventDefault();
    const change = changes(task, inputs);
    if (Object.keys(change).length === 0) return dialog.close();
    submit.disabled = true;
    try {
      await ask('PATCH', `/v1/tasks/${encodeURIComponent(task.id)}`, change);
      dialog.close();
      toast(`${brief(task.id, 60)} is changed.`);
    } catch (problem) {
      error.textContent = problem.message || 'Sign in again.';
      submit.disabled = false;
    }
    return undefined;
  };
  const form = h('form', { onsubmit: save }, ...rows, error,
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'quiet', onclick: () => dialog.close() }, 'Back'), submit));
  const dialog = open('Edit task', form, { wide: true });
  inputs.title.focus();
}

/** Only the fields that differ, so that changes of others to the rest are kept. */
function changes(task, inputs) {
  const change = {};
  for (const [name, input] of Object.entries(inputs)) {
    const value = input.type === 'number' ? Number(input.value) : input.value;
    if (value !== (task[name] ?? '')) change[name] = value;
  }
  return change;
}
