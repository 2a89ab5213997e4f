import { useEffect, useState } from 'preact/hooks';

import { testPartner } from '../api/configuration.ts';
import type { PartnerTest } from '../api/configuration.ts';
import { words as configuration } from '../texts/configuration.ts';
import { colon, span } from '../texts/format.ts';
import { useAction } from './action.tsx';
import { Step } from './connection-test.tsx';
import { FailureNote } from './failure-note.tsx';

interface Props {
  readonly partnerId: string;
  readonly password: string;
  readonly listenerId: string;
  readonly fileId: string;
  /** Whether the listener runs: before it is of no use to try. */
  readonly isReady: boolean;
}

const moodOf = (outcome: PartnerTest | undefined): 'good' | 'bad' | 'wait' =>
  outcome === undefined ? 'wait' : outcome.success ? 'good' : 'bad';

const Outcome = ({ of }: { readonly of: PartnerTest }) => {
  const { login } = configuration.value.setUp;
  const file = of.success ? of.virtualFile : null;
  const refusals = file === null ? [] : [file.write, file.read].filter(({ allowed }) => allowed);
  return (
    <>
      <div class="quiet">
        {of.success ? login.taken(span(of.latency)) : of.message}
        {!of.success && of.diagnostic !== '' && (
          <>
            {' '}
            <code>{of.diagnostic}</code>
          </>
        )}
      </div>
      {file !== null && (
        <div class="quiet">
          {refusals.length === 0
            ? [file.write.message, file.read.message].find((one) => one !== null)
            : login.may(file.fileId, file.write.allowed, file.read.allowed)}
        </div>
      )}
      {of.notTried.length > 0 && (
        <details class="small">
          <summary>{login.notTried}</summary>
          <ul>
            {of.notTried.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
};

/** A step of the first contact: the service opens a session with itself as the partner, before that does. */
export const LoginTest = ({ partnerId, password, listenerId, fileId, isReady }: Props) => {
  const { login } = configuration.value.setUp;
  const [outcome, setOutcome] = useState<PartnerTest>();
  const action = useAction();
  const test = async (): Promise<void> => {
    setOutcome(undefined);
    setOutcome(await testPartner(partnerId, { password, serverId: listenerId, virtualFile: fileId }));
  };
  useEffect(() => {
    if (isReady) action.run(test);
  }, [isReady]);
  return (
    <Step mood={action.failure === undefined ? moodOf(outcome) : 'bad'}>
      <strong>{login.title}</strong>
      {action.isRunning && `${colon.value} ${login.running}`}
      {outcome !== undefined && <Outcome of={outcome} />}
      <FailureNote failure={action.failure} />
      {isReady && !action.isRunning && outcome?.success !== true && (
        <div>
          <button type="button" class="button" onClick={() => action.run(test)}>
            {login.again}
          </button>
        </div>
      )}
    </Step>
  );
};
