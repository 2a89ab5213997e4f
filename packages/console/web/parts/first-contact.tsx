import { useAnswer } from '../api/answer.ts';
import { listeners, partners } from '../api/configuration.ts';
import { login } from '../api/session.ts';
import { listTransfers, nameOf } from '../api/transfers.ts';
import { words as configuration } from '../texts/configuration.ts';
import { colon, fromNow } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { Step } from './connection-test.tsx';
import { FailureNote } from './failure-note.tsx';
import { portsOf } from './listener-state.tsx';
import { LoginTest } from './login-test.tsx';
import { Card } from './page.tsx';

const EVERY_MS = 2000;

interface Props {
  readonly partnerId: string;
  readonly password: string;
  readonly listenerId: string;
  readonly fileId: string;
  /** The partner has to show a certificate that was issued just now. */
  readonly hasCertificate: boolean;
  /** Of the set-up of the client app. */
  readonly question: Readonly<Record<string, string>>;
}

/** Whether the partner gets through, step by step, as it tries: each step is what the service itself has seen. */
export const FirstContact = (props: Props) => {
  const { partnerId, password, listenerId, fileId, hasCertificate, question } = props;
  const { setUp } = configuration.value;
  const { listenerStatus } = texts.value;
  const { value, failure, ask } = useAnswer(
    `first contact ${partnerId}`,
    async (signal) => {
      const [listener, partner, { content }] = await Promise.all([
        listeners.read(listenerId, signal),
        partners.read(partnerId, signal),
        listTransfers({ peer: partnerId }, { size: 1 }, signal),
      ]);
      return { listener, partner, transfer: content[0] };
    },
    EVERY_MS,
  );
  const { listener, partner, transfer } = value ?? {};
  const peerUrl = login.value?.peerUrl;
  const runs = listener?.status === 'RUNNING';
  const seen = partner?.lastConnection ?? undefined;
  const hasFailed = transfer?.status === 'FAILED';
  return (
    <Card title={setUp.test}>
      <FailureNote failure={failure} again={ask} isStale={value !== undefined} />
      <ol class="steps" aria-live="polite">
        <Step mood={runs ? 'good' : listener === undefined ? 'wait' : 'bad'}>
          <strong>{setUp.steps.listener(listenerId)}</strong>
          {colon.value} {listener !== undefined && `${listenerStatus[listener.status]}, ${portsOf(listener)}`}
          {typeof listener?.statusReason === 'string' && <div class="quiet">{listener.statusReason}</div>}
          {listener !== undefined && !runs && (
            <div>
              <a href={`/listeners/${encodeURIComponent(listenerId)}`}>{setUp.toListener}</a>
            </div>
          )}
        </Step>
        <Step mood={partner?.enabled === true ? 'good' : partner === undefined ? 'wait' : 'bad'}>
          <strong>{setUp.steps.known}</strong>
        </Step>
        <LoginTest {...{ partnerId, password, listenerId, fileId }} isReady={runs} />
        <Step mood={seen === undefined ? 'wait' : 'good'}>
          <strong>{setUp.steps.connects}</strong>
          {colon.value}{' '}
          {seen === undefined
            ? setUp.steps.waits
            : [fromNow(seen), partner?.lastSeen?.remoteAddress].filter((one) => one !== undefined).join(', ')}
        </Step>
        <Step mood={transfer?.status === 'COMPLETED' ? 'good' : hasFailed ? 'bad' : 'wait'}>
          <strong>{setUp.steps.file}</strong>
          {colon.value}{' '}
          {transfer === undefined ? (
            setUp.steps.waits
          ) : (
            <>
              <a href={`/transfers/${transfer.id}`}>{nameOf(transfer)}</a> {texts.value.status[transfer.status]}
              {hasFailed && <div class="quiet">{transfer.reason}</div>}
            </>
          )}
        </Step>
      </ol>
      {typeof peerUrl === 'string' && transfer?.status !== 'COMPLETED' && (
        <p class="row">
          <a
            class="button main"
            href={`${peerUrl.replace(/\/$/, '')}/servers?${new URLSearchParams({ setup: '1', ...question }).toString()}`}
            target="_blank"
            rel="noreferrer"
          >
            {setUp.tryIt}
          </a>
          <span class="quiet">{hasCertificate ? setUp.tryCertificateHint : setUp.tryHint}</span>
        </p>
      )}
    </Card>
  );
};
