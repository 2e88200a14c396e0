// Dialogs and short notifications.

import { h } from './dom.js';

/** Shows content in a dialog; Esc or a click outside closes it. Returns the dialog. */
export function open(title, content, { wide = false } = {}) {
  const before = document.activeElement;
  const close = h('button', { type: 'button', class: 'quiet icon', 'aria-label': 'Close', onclick: () => dialog.close() }, '✕');
  const heading = h('h2', { id: 'dialog-title' }, title);
  const dialog = h('dialog', { class: wide ? 'wide' : '', 'aria-labelledby': 'dialog-title' },
    h('div', { class: 'dialog-head' }, heading, close), content);
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener('close', () => {
    dialog.remove();
    if (before?.isConnected) before.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Shows a short notification in the corner. */
export function toast(text, kind = 'good') {
  const message = h('p', { class: `toast ${kind}` }, text);
  document.getElementById('toasts').append(message);
  setTimeout(() => message.remove(), kind === 'bad' ? 9_000 : 4_500);
}

/** Shows a form in a dialog. If `act` fails, the dialog stays open and shows the error. */
export function confirm({ title, lead, field, button, danger = false, act }) {
  const error = h('p', { class: 'error', role: 'alert' });
  const input = field && h('textarea', { id: 'dialog-field', rows: 2, required: true, maxlength: 500, placeholder: field.placeholder });
  const submit = h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, button);
  const cancel = h('button', { type: 'button', class: 'quiet', onclick: () => dialog.close() }, 'Back');
  const send = async (event) => {
    event.preventDefault();
    const text = input?.value.trim();
    if (input && !text) {
      error.textContent = field.missing;
      input.focus();
      return;
    }
    submit.disabled = true;
    try {
      const said = await act(text);
      dialog.close();
      if (said) toast(said);
    } catch (problem) {
      error.textContent = problem.message || 'Sign in again.';
      submit.disabled = false;
    }
  };
  const form = h('form', { novalidate: true, onsubmit: send },
    h('div', { class: 'lead' }, lead),
    field && h('label', { for: 'dialog-field' }, field.label), input, error,
    h('div', { class: 'buttons' }, cancel, submit));
  const dialog = open(title, form);
  (input ?? submit).focus();
  return dialog;
}
