import { useState } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { app } from '../api/session.ts';
import { activeTransfers, nameOf } from '../api/transfers.ts';
import type { Progress, Transfer } from '../api/transfers.ts';
import { colon, number } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { nowWords } from '../texts/now.ts';
import { FailureNote } from './failure-note.tsx';
import { useTransferEvents } from './live-transfers.ts';
import { Card, Empty } from './page.tsx';
import { DirectionWord } from './pills.tsx';
import { ProgressBar } from './progress.tsx';
import type { Shown } from './progress.tsx';

/** More are counted, not shown: nobody looks at two hundred bars. */
const SHOWN = 20;

/** Before the first progress of a transfer is told. */
const unknownProgress = ({ bytes, size }: Transfer): Shown => ({
  bytesTransferred: bytes,
  expectedBytes: size,
  isAnnounced: false,
  rate: null,
  estimatedEnd: null,
});

/** The transfers that run, with their bars; @param ended is told when one has ended. */
export const Running = ({ ended }: { readonly ended: () => void }) => {
  const { shell, pages } = texts.value;
  const now = nowWords.value;
  const { value, failure, ask } = useAnswer(`active ${app.value}`, activeTransfers, 30_000);
  const [changes, setChanges] = useState<ReadonlyMap<string, Transfer>>(new Map());
  const [progress, setProgress] = useState<ReadonlyMap<string, Progress>>(new Map());
  const isOpen = useTransferEvents('/api/v1/transfers/events', {
    transfer: (one) => {
      setChanges((last) => new Map([...last].slice(-500)).set(one.id, one));
      if (one.ended !== null) ended();
    },
    progress: (all) => setProgress(new Map(all.map((one) => [String(one.id), one]))),
    reset: () => {
      setChanges(new Map());
      ask();
    },
  });
  const known = new Map([...(value ?? []).map((one) => [one.id, one] as const), ...changes]);
  const running = [...known.values()].filter(({ status }) => status === 'IN_PROGRESS');
  return (
    <Card
      title={running.length === 0 ? now.running : `${now.running}${colon.value} ${number(running.length)}`}
      actions={<span class={isOpen ? 'live on' : 'live'}>{isOpen ? shell.live : shell.notLive}</span>}
    >
      <FailureNote failure={failure} again={ask} isStale={value !== undefined} />
      {running.length === 0 ? (
        <Empty title={now.nothingRuns} />
      ) : (
        <ul class="running">
          {running.slice(0, SHOWN).map((one) => (
            <li key={one.id}>
              <div class="row spread">
                <a href={`/transfers/${one.id}`}>{nameOf(one)}</a>
                <span class="quiet">
                  <DirectionWord direction={one.direction} /> · {one.peer}
                </span>
              </div>
              <ProgressBar of={progress.get(one.id) ?? unknownProgress(one)} label={nameOf(one)} />
            </li>
          ))}
        </ul>
      )}
      {running.length > SHOWN && <a href="/transfers?status=IN_PROGRESS">{pages.transfers}</a>}
    </Card>
  );
};
