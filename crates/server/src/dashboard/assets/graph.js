// A picture of what a task waits for and what waits for it. Each task is a link.

import { toTask } from './addresses.js';
import { fill, h, s } from './dom.js';
import { STATUS_WORDS, brief } from './words.js';

const WIDTH = 176;
const HEIGHT = 40;
const GAP_X = 44;
const GAP_Y = 12;
const SHOWN_IN_COLUMN = 12;

const steps = (step) => (step === 0 ? 'this task' : `${Math.abs(step)} ${Math.abs(step) === 1 ? 'step' : 'steps'} ${step < 0 ? 'before' : 'after'} it`);

/** Draws the answer of `GET /v1/tasks/{id}/graph`; says so if there is nothing to draw. */
export function drawGraph(element, graph) {
  if (!graph || graph.tasks.length < 2) {
    fill(element, h('p', { class: 'rest' }, 'It waits for no task, and no task waits for it.'));
    return;
  }
  const columns = new Map();
  for (const task of graph.tasks) {
    if (!columns.has(task.step)) columns.set(task.step, []);
    columns.get(task.step).push(task);
  }
  const left = Math.min(...columns.keys());
  let hidden = graph.before_left_out + graph.after_left_out;
  const places = new Map();
  const tallest = Math.max(...[...columns.values()].map((column) => Math.min(column.length, SHOWN_IN_COLUMN)));
  for (const [step, column] of columns) {
    const shown = column.slice(0, SHOWN_IN_COLUMN);
    hidden += column.length - shown.length;
    const top = ((tallest - shown.length) * (HEIGHT + GAP_Y)) / 2;
    shown.forEach((task, row) => places.set(task.id, { task, x: (step - left) * (WIDTH + GAP_X) + 2, y: top + row * (HEIGHT + GAP_Y) + 2 }));
  }
  const width = columns.size * (WIDTH + GAP_X) - GAP_X + 4;
  const height = tallest * (HEIGHT + GAP_Y) - GAP_Y + 4;
  const svg = s('svg', { class: 'graph', width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Tasks before and after this one' },
    ...edges(places), ...[...places.values()].map(node));
  const box = h('div', { class: 'graph-box', tabindex: 0, role: 'group', 'aria-label': 'Graph of dependencies' }, svg);
  fill(element, box,
    hidden > 0 && h('p', { class: 'rest' }, `and ${hidden} more`),
    h('p', { class: 'rest' }, 'Left: what it waits for. Right: what waits for it. At most three steps; open a task to see further.'));
  const { x } = places.get(graph.tasks.find((task) => task.step === 0).id);
  requestAnimationFrame(() => { box.scrollLeft = x - (box.clientWidth - WIDTH) / 2; });
}

function edges(places) {
  const lines = [];
  for (const { task, x, y } of places.values()) {
    for (const id of task.depends_on) {
      const from = places.get(id);
      if (!from) continue;
      const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, x, y + HEIGHT / 2];
      const bend = Math.max(20, Math.abs(x2 - x1) / 2);
      const isMet = ['completed', 'skipped'].includes(from.task.status);
      lines.push(s('path', { class: isMet ? 'edge met' : 'edge', d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }));
    }
  }
  return lines;
}

function node({ task, x, y }) {
  const words = STATUS_WORDS[task.status] ?? task.status;
  return s('a', { href: toTask(task.id), class: task.step === 0 ? 'node here' : 'node', 'data-id': task.id },
    s('rect', { x, y, width: WIDTH, height: HEIGHT, rx: 8 }, s('title', {}, `${brief(task.title, 300)}\n${words}, ${steps(task.step)}`)),
    s('circle', { class: `fill-${task.status}`, cx: x + 14, cy: y + HEIGHT / 2, r: 4.5 }),
    s('text', { x: x + 26, y: y + 17 }, brief(task.title, 20)),
    s('text', { class: 'small', x: x + 26, y: y + 31 }, words.toLowerCase()));
}
