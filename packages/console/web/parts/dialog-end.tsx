import { texts } from '../texts/index.ts';
import type { Action } from './action.tsx';
import { FailureNote } from './failure-note.tsx';

interface Props {
  readonly action: Pick<Action, 'failure' | 'isRunning'>;
  /** On the button that sends the form. */
  readonly word: string;
  readonly close: () => void;
}

/** The end of a form in a dialog: why it was refused, and the two ways out. */
export const DialogEnd = ({ action, word, close }: Props) => (
  <>
    <FailureNote failure={action.failure} />
    <div class="row">
      <button class="button main" disabled={action.isRunning}>
        {word}
      </button>
      <button type="button" class="button" onClick={close}>
        {texts.value.common.cancel}
      </button>
    </div>
  </>
);
