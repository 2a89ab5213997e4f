import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { testConnection } from '../api/configuration.ts';
import type { ConnectionTest, RemoteServer } from '../api/configuration.ts';
import { words as configuration } from '../texts/configuration.ts';
import { colon, day, number, span } from '../texts/format.ts';
import '../style/configuration.css';
import { useAction } from './action.tsx';
import { FailureNote } from './failure-note.tsx';
import { Card, Facts } from './page.tsx';

type Good = Extract<ConnectionTest, { readonly success: true }>;

const SOON_DAYS = 30;

/** A step of a test, or of a set-up: whether it is done, in a sign and in words. */
export const Step = ({ mood, children }: { mood: 'good' | 'bad' | 'wait'; children: ComponentChildren }) => (
  <li class={mood}>
    <span class="mark" aria-hidden="true">
      {{ good: '✓', bad: '✗', wait: '…' }[mood]}
    </span>
    <span>{children}</span>
  </li>
);

const Steps = ({ of, server }: { readonly of: Good; readonly server: RemoteServer }) => {
  const { steps } = configuration.value.servers;
  const port = server.tlsEnabled ? (server.tlsPort ?? 5001) : server.port;
  return (
    <ol class="steps">
      <Step mood="good">
        <strong>{steps.tcp}</strong>
        {colon.value} {steps.reached(`${server.host}:${port}`)}
      </Step>
      <Step mood="good">
        <strong>{steps.tls}</strong>
        {colon.value} {of.tls === null ? steps.plain : `${of.tls.protocol}, ${of.tls.cipher}`}
      </Step>
      <Step mood="good">
        <strong>{steps.login}</strong>
        {colon.value} {steps.taken(of.serverVersion === 1 ? 'D' : 'E')}
      </Step>
    </ol>
  );
};

const Outcome = ({ of, server }: { readonly of: ConnectionTest; readonly server: RemoteServer }) => {
  const { servers: words, values } = configuration.value;
  if (!of.success) {
    return (
      <div class="note bad" role="status">
        <strong>{words.bad}</strong>
        <span>{of.message}</span>
        <Facts
          of={[
            [words.errorCode, <code key="code">{of.errorCode}</code>],
            [words.diagnostic, of.diagnostic === '' ? null : <code key="code">{of.diagnostic}</code>],
            [words.took, span(of.latency)],
          ]}
        />
      </div>
    );
  }
  const { negotiated, tls } = of;
  const days = tls?.daysRemaining ?? undefined;
  return (
    <>
      <div class="note good" role="status">
        <strong>{words.good}</strong>
        <Steps of={of} server={server} />
      </div>
      {days !== undefined && days <= SOON_DAYS && <p class="note warn">{words.daysLeft(number(days))}</p>}
      {of.advice !== null && <p class="note">{of.advice}</p>}
      <Facts
        of={[
          [words.took, span(of.latency)],
          [words.framing, values.tcpipHeader[negotiated.dialect]],
          [
            words.points,
            negotiated.syncInterval === 0
              ? words.noPoints
              : words.pointsOf(number(negotiated.syncInterval), number(negotiated.syncWindow)),
          ],
          [words.certificate, tls?.certificate?.subject],
          [words.issuer, tls?.certificate?.issuer],
          [
            words.ends,
            tls?.certificate === undefined || tls.certificate === null
              ? null
              : `${day(tls.certificate.notAfter)} (${words.daysLeft(number(days ?? 0))})`,
          ],
        ]}
      />
    </>
  );
};

interface Props {
  readonly server: RemoteServer;
  readonly tested: () => void;
  /** Without waiting for the button. */
  readonly isAtOnce?: boolean;
}

/** Tries a remote server, and says how far that came. */
export const ConnectionTestCard = ({ server, tested, isAtOnce = false }: Props) => {
  const { servers: words } = configuration.value;
  const [outcome, setOutcome] = useState<ConnectionTest>();
  const action = useAction();
  const test = async (): Promise<void> => {
    setOutcome(undefined);
    const answer = await testConnection(String(server.id));
    setOutcome(answer);
    tested();
  };
  useEffect(() => {
    if (isAtOnce) action.run(test);
  }, []);
  return (
    <Card title={words.test}>
      <p class="quiet">{words.testHint}</p>
      <FailureNote failure={action.failure} />
      {outcome !== undefined && <Outcome of={outcome} server={server} />}
      <div class="row">
        <button type="button" class="button main" disabled={action.isRunning} onClick={() => action.run(test)}>
          {action.isRunning ? words.testing : words.test}
        </button>
      </div>
    </Card>
  );
};
