import { useRef } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { adviceOf, cluster, explainedOf, health, listeners, recentFailures, remoteServers } from '../api/attention.ts';
import type { Cluster, Listener, RemoteServer } from '../api/attention.ts';
import { endingIssued, endingStores, usesOf } from '../api/ending.ts';
import { readLicense } from '../api/license.ts';
import { app } from '../api/session.ts';
import { FailureNote } from '../parts/failure-note.tsx';
import { Matters } from '../parts/matters.tsx';
import { Card, Empty, Loading, Page } from '../parts/page.tsx';
import { Pill } from '../parts/pills.tsx';
import { Running } from '../parts/running.tsx';
import { colon, fromNow, number, time } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { nowWords } from '../texts/now.ts';

const EVERY_MS = 10_000;
/** Of what changes by the day. */
const SELDOM_MS = 300_000;
/** Ends that come close together are one reason to ask what failed. */
const GATHER_MS = 2000;

const Listeners = ({ of }: { readonly of: readonly Listener[] }) => {
  const { listenerStatus } = texts.value;
  const now = nowWords.value;
  return (
    <Card title={now.listeners}>
      {of.length === 0 ? (
        <Empty title={now.noListener}>
          <span>{now.noListenerHint}</span>
        </Empty>
      ) : (
        <ul class="running">
          {of.map(({ serverId, status, port, tlsPort, sslEnabled, activeConnections, maxConnections, pods }) => (
            <li key={serverId}>
              <div class="row spread">
                <span>
                  <strong>{serverId}</strong>{' '}
                  <span class="quiet">
                    {[port, ...(sslEnabled ? [`TLS ${tlsPort ?? 5001}`] : [])].filter((one) => one !== null).join(', ')}
                  </span>
                </span>
                <Pill mood={status === 'RUNNING' ? 'good' : status === 'FAILED' ? 'bad' : ''}>
                  {listenerStatus[status]}
                </Pill>
              </div>
              <span class="quiet">
                {now.sessions}
                {colon.value} {number(activeConnections)} / {number(maxConnections)}
                {pods.length > 1 &&
                  ` · ${pods.map((pod) => `${pod.name}${colon.value} ${listenerStatus[pod.status]}`).join(', ')}`}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
};

const Queue = ({ of }: { readonly of: readonly RemoteServer[] }) => {
  const { serverStatus } = texts.value;
  const now = nowWords.value;
  return (
    <Card title={now.queue}>
      {of.length === 0 ? (
        <Empty title={now.queueEmpty}>
          <span>{now.queueEmptyHint}</span>
        </Empty>
      ) : (
        <ul class="running">
          {of.map(({ id, name, host, port, status, circuit }) => (
            <li key={id}>
              <div class="row spread">
                <span>
                  <strong>{name}</strong>{' '}
                  <span class="quiet">
                    {host}:{port}
                  </span>
                </span>
                <Pill mood={status === 'CONNECTED' ? 'good' : status === 'UNKNOWN' ? '' : 'bad'}>
                  {serverStatus[status]}
                </Pill>
              </div>
              <span class="row quiet">
                <a href={`/transfers?status=PENDING&peer=${id}`}>{now.waiting(name)}</a>
                {circuit !== null && circuit.state !== 'CLOSED' && (
                  <span>
                    {now.circuit[circuit.state]}
                    {circuit.nextTry !== null && ` · ${now.nextTry} ${time(circuit.nextTry)}`}
                  </span>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
};

const Pods = ({ of }: { readonly of: Cluster }) => {
  const { apps, common } = texts.value;
  const now = nowWords.value;
  return (
    <Card title={`${now.pods}${colon.value} ${number(of.memberCount)}`}>
      <ul class="running">
        {of.members.map(({ name, app: kind, ready, isLeader, sessions, startedAt }) => (
          <li key={`${kind} ${name}`}>
            <div class="row spread">
              <span>
                <strong>{name}</strong>{' '}
                <span class="quiet">
                  {apps[kind]}
                  {isLeader && ` · ${now.leader}`}
                </span>
              </span>
              <Pill mood={ready === false ? 'warn' : 'good'}>{ready === false ? now.notReady : now.health.UP}</Pill>
            </div>
            <span class="quiet">
              {sessions === null ? '' : `${now.sessions}${colon.value} ${number(sessions)} · `}
              {typeof startedAt === 'string' && `${common.started} ${fromNow(startedAt)}`}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
};

/** The first page: what needs attention, what runs, what the service runs on. */
export const NowPage = () => {
  const now = nowWords.value;
  const kind = app.value;
  const failures = useAnswer(`failures ${kind}`, recentFailures, 60_000);
  const parts = useAnswer(`health ${kind}`, health, EVERY_MS);
  const licensed = useAnswer('license', readLicense, SELDOM_MS);
  const pods = useAnswer(`cluster ${kind}`, cluster, EVERY_MS);
  const listening = useAnswer(`listeners ${kind}`, listeners, EVERY_MS);
  const servers = useAnswer(`servers ${kind}`, remoteServers, EVERY_MS);
  const issued = useAnswer(`issued that end ${kind}`, endingIssued, SELDOM_MS);
  const stores = endingStores(parts.value);
  const names = stores.map((one) => `${one.kind}/${one.name}`).join(' ');
  const uses = useAnswer(`uses of ${names}`, (signal) => usesOf(stores, signal), SELDOM_MS);
  const explained = explainedOf(failures.value);
  const advice = useAnswer(`advice ${explained.join(' ')}`, (signal) => adviceOf(explained, signal), SELDOM_MS);
  const gathering = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const ended = (): void => {
    gathering.current ??= setTimeout(() => {
      gathering.current = undefined;
      failures.ask();
    }, GATHER_MS);
  };
  const all = [failures, parts, licensed, pods, listening, servers, issued, uses, advice];
  const failed = all.find(({ failure }) => failure !== undefined);
  const isKnown = failures.value !== undefined && parts.value !== undefined;
  return (
    <Page title={now.title}>
      <FailureNote
        failure={failed?.failure}
        again={() => all.forEach(({ ask }) => ask())}
        isStale={failed?.value !== undefined}
      />
      <Card title={now.attention}>
        {isKnown ? (
          <Matters
            of={{
              advice: advice.value ?? new Map(),
              ...{ failures: failures.value, health: parts.value, license: licensed.value, cluster: pods.value },
              ...{ listeners: listening.value ?? [], servers: servers.value ?? [] },
              endings: { of: [...stores, ...(issued.value ?? [])], uses: uses.value ?? new Map() },
            }}
          />
        ) : (
          failed === undefined && <Loading />
        )}
      </Card>
      <div class="columns">
        <Running ended={ended} />
        {kind === 'server' ? <Listeners of={listening.value ?? []} /> : <Queue of={servers.value ?? []} />}
        {pods.value !== undefined && <Pods of={pods.value} />}
      </div>
    </Page>
  );
};
