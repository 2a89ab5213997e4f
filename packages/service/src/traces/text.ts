import type { TracePiece, TraceRow, TraceStore } from './store.js';

/** A session as text: what it was, then a line for each thing that passed or happened. */
export async function* sessionText(store: TraceStore, row: TraceRow, title: string): AsyncGenerator<string> {
  yield headOf(row, title);
  yield* linesOf(await store.text(row.id));
}

/** The sessions of an owner, oldest first. */
export async function* allText(store: TraceStore, rows: readonly TraceRow[], title: string): AsyncGenerator<string> {
  if (rows.length === 0) yield `# no session of ${title} was recorded\n`;
  for (const [index, row] of rows.entries()) {
    if (index > 0) yield '\n';
    yield* sessionText(store, row, title);
  }
}

const headOf = (
  { id, node, about, started_at: start, ended_at: end, outcome, lines }: TraceRow,
  title: string,
): string =>
  [
    `# session ${id} of ${title}`,
    `# ${[...Object.entries(about), ['node', node]].map((pair) => pair.join(' ')).join(', ')}`,
    `# ${start.toISOString()} to ${end === null ? 'now, or to the last line' : `${end.toISOString()}: ${outcome ?? ''}`}; ${lines} lines`,
    '# time (UTC), session, transfer, <-- received here or --> sent from here or --- what happened; secrets are masked',
    '',
  ].join('\n');

function* linesOf(pieces: readonly TracePiece[]): Generator<string> {
  let next = 0;
  for (const { firstLine, lines, text } of pieces) {
    if (firstLine > next)
      yield `# ${firstLine - next} lines left out: of a session its first and its newest are kept\n`;
    yield text;
    next = firstLine + lines;
  }
}
