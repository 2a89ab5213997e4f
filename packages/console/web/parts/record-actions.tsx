import { useLocation } from 'preact-iso';
import { useState } from 'preact/hooks';

import { download } from '../api/download.ts';
import { may } from '../api/session.ts';
import { cancelTransfer, releaseTransfer, replayTransfer, retryTransfer } from '../api/transfers.ts';
import type { Detail } from '../api/transfers.ts';
import { texts } from '../texts/index.ts';
import { recordWords } from '../texts/record.ts';
import type { Action } from './action.tsx';
import { Dialog } from './dialog.tsx';

interface Props {
  readonly detail: Detail;
  readonly action: Action;
  readonly changed: () => void;
}

const isEnded = (status: string): boolean => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(status);

/** What this person may do with this transfer now: nothing that would be refused is offered. */
export const RecordActions = ({ detail, action, changed }: Props) => {
  const { route } = useLocation();
  const [asks, setAsks] = useState(false);
  const { common } = texts.value;
  const record = recordWords.value;
  if (!may('operator')) return null;
  const { status, type } = detail.of;
  const id = String(detail.of.id);
  const then = (what: () => Promise<void>) => () => action.run(() => what().then(changed));
  const isClient = detail.app === 'client';
  const failed = status === 'FAILED' || status === 'CANCELLED';
  return (
    <>
      {isClient && status === 'FAILED' && (
        <button
          type="button"
          class="button main"
          title={record.retryHint}
          disabled={action.isRunning}
          onClick={then(() => retryTransfer(id))}
        >
          {record.retry}
        </button>
      )}
      {isClient && isEnded(status) && detail.of.contentKept !== false && (
        <button
          type="button"
          class="button"
          title={record.replayHint}
          disabled={action.isRunning}
          onClick={() => action.run(() => replayTransfer(id).then((made) => route(`/transfers/${made}`)))}
        >
          {record.replay}
        </button>
      )}
      {isClient && failed && detail.of.ordered && (
        <button
          type="button"
          class="button"
          title={record.releaseHint}
          disabled={action.isRunning}
          onClick={then(() => releaseTransfer(id))}
        >
          {record.release}
        </button>
      )}
      {isClient && type === 'FILE' && detail.of.direction === 'RECEIVE' && status === 'COMPLETED' && (
        <button
          type="button"
          class="button"
          disabled={action.isRunning}
          onClick={() => action.run(() => download(`/api/v1/transfers/${id}/content`, detail.of.filename))}
        >
          {record.download}
        </button>
      )}
      {!isEnded(status) && (
        <button type="button" class="button danger" disabled={action.isRunning} onClick={() => setAsks(true)}>
          {record.cancel}
        </button>
      )}
      {asks && (
        <Dialog title={record.cancel} close={() => setAsks(false)}>
          <p>{record.cancelAsk}</p>
          <div class="row">
            <button
              type="button"
              class="button danger"
              onClick={() => {
                setAsks(false);
                then(() => cancelTransfer(id))();
              }}
            >
              {record.cancel}
            </button>
            <button type="button" class="button" onClick={() => setAsks(false)}>
              {common.close}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
};
