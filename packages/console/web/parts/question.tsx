import { useState } from 'preact/hooks';

import { asFailure } from '../api/failure.ts';
import type { Failure } from '../api/failure.ts';
import { texts } from '../texts/index.ts';
import { Dialog } from './dialog.tsx';
import { FailureNote } from './failure-note.tsx';

interface Props {
  /** Of the button that opens it, of the dialog, and of the button that does it. */
  readonly word: string;
  /** For a list of them: which one. */
  readonly label?: string;
  readonly text: string;
  /** Where what is asked can be forced: the word for it. */
  readonly force?: string;
  /** Offers to force it at once, not after a refusal alone. */
  readonly forceAtOnce?: boolean;
  readonly act: (force: boolean) => Promise<unknown>;
  readonly done: () => void;
}

/** A button that asks before it acts; a refusal (409) is told in the dialog, with the way to force it where that can be meant. */
export const Question = ({ word, label, text, force, forceAtOnce = false, act, done }: Props) => {
  const [isOpen, setOpen] = useState(false);
  const [isRunning, setRunning] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const { common } = texts.value;
  const run = (forced: boolean): void => {
    setRunning(true);
    setFailure(undefined);
    act(forced).then(
      () => {
        setRunning(false);
        setOpen(false);
        done();
      },
      (thrown: unknown) => {
        setRunning(false);
        setFailure(asFailure(thrown));
      },
    );
  };
  const mayForce = force !== undefined && (forceAtOnce || failure?.status === 409);
  return (
    <>
      <button
        type="button"
        class="button danger"
        {...(label === undefined ? {} : { 'aria-label': label })}
        onClick={() => {
          setFailure(undefined);
          setOpen(true);
        }}
      >
        {word}
      </button>
      {isOpen && (
        <Dialog title={word} close={() => setOpen(false)}>
          <p>{text}</p>
          <FailureNote failure={failure} />
          <div class="row">
            {!(failure?.status === 409 && mayForce) && (
              <button type="button" class="button danger" disabled={isRunning} onClick={() => run(false)}>
                {word}
              </button>
            )}
            {mayForce && (
              <button type="button" class="button danger" disabled={isRunning} onClick={() => run(true)}>
                {force}
              </button>
            )}
            <button type="button" class="button" onClick={() => setOpen(false)}>
              {common.close}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
};
