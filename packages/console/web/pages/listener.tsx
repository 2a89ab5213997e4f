import { useRoute } from 'preact-iso';

import { useAnswer } from '../api/answer.ts';
import { commandListener, endSession, listeners, sessionsOf } from '../api/configuration.ts';
import type { Listener, ListenerVerb, Session } from '../api/configuration.ts';
import { may } from '../api/session.ts';
import { useAction } from '../parts/action.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { ResourceForm } from '../parts/form.tsx';
import { LISTENER } from '../parts/layouts.ts';
import { ListenerPill, portsOf } from '../parts/listener-state.tsx';
import { One } from '../parts/one.tsx';
import { Card, Empty, Facts } from '../parts/page.tsx';
import { Pill } from '../parts/pills.tsx';
import { Question } from '../parts/question.tsx';
import { words as configuration } from '../texts/configuration.ts';
import { bytes, colon, fromNow, number, time } from '../texts/format.ts';

const EVERY_MS = 5000;

const Commands = ({ row, changed }: { readonly row: Listener; readonly changed: () => void }) => {
  const { listeners: words } = configuration.value;
  const action = useAction();
  if (!may('operator')) return null;
  const command = (verb: ListenerVerb) => () =>
    action.run(() => commandListener(row.serverId, verb, false).finally(changed));
  return (
    <>
      <FailureNote failure={action.failure} />
      {!row.wanted || row.status === 'FAILED' || row.status === 'STOPPED' ? (
        <button type="button" class="button main" disabled={action.isRunning} onClick={command('start')}>
          {words.start}
        </button>
      ) : (
        <>
          <button type="button" class="button" disabled={action.isRunning} onClick={command('restart')}>
            {words.restart}
          </button>
          <Question
            {...{ word: words.stop, text: words.stopAsk, force: words.stopNow, forceAtOnce: true, done: changed }}
            act={(force) => commandListener(row.serverId, 'stop', force)}
          />
        </>
      )}
    </>
  );
};

const ByPod = ({ of }: { readonly of: Listener['pods'] }) => {
  const { listeners: words, common } = configuration.value;
  return (
    <Card title={words.byPod}>
      <div class="frame">
        <table>
          <thead>
            <tr>
              <th scope="col">{words.pod}</th>
              <th scope="col">{common.state}</th>
              <th scope="col" class="number">
                {words.sessions}
              </th>
              <th scope="col" class="number">
                {words.refused}
              </th>
            </tr>
          </thead>
          <tbody>
            {of.map(({ name, status, statusReason, nextAttemptAt, activeConnections, refusedConnections }) => (
              <tr key={name}>
                <td class="name">{name}</td>
                <td>
                  <ListenerPill status={status} />
                  {statusReason !== null && <div class="quiet">{statusReason}</div>}
                  {nextAttemptAt !== null && (
                    <div class="quiet">
                      {words.next}
                      {colon.value} {time(nextAttemptAt)}
                    </div>
                  )}
                </td>
                <td class="number">{number(activeConnections)}</td>
                <td class="number">{number(refusedConnections)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
};

const SessionRow = ({ of, listener, ended }: { of: Session; listener: string; ended: () => void }) => {
  const { listeners: words } = configuration.value;
  const { id, partnerId, remoteAddress, tls, state, transfer, since, pod } = of;
  const who = partnerId ?? remoteAddress;
  return (
    <tr>
      <td class="name">
        {partnerId ?? <span class="quiet">{words.unknown}</span>}
        <div class="quiet">{remoteAddress}</div>
      </td>
      <td>
        <Pill mood={state === 'TRANSFERRING' ? 'run' : ''}>{words.states[state]}</Pill>
        {transfer !== null && (
          <div>
            <a href={`/transfers/${transfer.id}`}>{transfer.filename ?? `#${transfer.id}`}</a>{' '}
            <span class="quiet">{bytes(transfer.bytesTransferred)}</span>
          </div>
        )}
      </td>
      <td class="narrow-off">{tls === null ? words.plain : tls.protocol}</td>
      <td class="narrow-off">{fromNow(since)}</td>
      <td class="narrow-off">{pod}</td>
      <td>
        {may('operator') && (
          <Question
            {...{ word: words.end, label: `${words.end} ${who}`, text: words.endAsk(who), done: ended }}
            act={() => endSession(listener, id)}
          />
        )}
      </td>
    </tr>
  );
};

const Sessions = ({ listener }: { readonly listener: string }) => {
  const { listeners: words, common } = configuration.value;
  const { value, failure, ask } = useAnswer(`sessions ${listener}`, (signal) => sessionsOf(listener, signal), EVERY_MS);
  return (
    <Card title={words.sessions}>
      <FailureNote failure={failure} again={ask} isStale={value !== undefined} />
      {value !== undefined && value.silentPods.length > 0 && (
        <p class="note warn">{words.silent(value.silentPods.join(', '))}</p>
      )}
      {value?.sessions.length === 0 && <Empty title={words.noSession} />}
      {value !== undefined && value.sessions.length > 0 && (
        <div class="frame">
          <table>
            <thead>
              <tr>
                <th scope="col">{words.partner}</th>
                <th scope="col">{common.state}</th>
                <th scope="col" class="narrow-off">
                  {words.line}
                </th>
                <th scope="col" class="narrow-off">
                  {words.since}
                </th>
                <th scope="col" class="narrow-off">
                  {words.pod}
                </th>
                <td />
              </tr>
            </thead>
            <tbody>
              {value.sessions.map((one) => (
                <SessionRow key={one.id} of={one} listener={listener} ended={ask} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
};

/** A listener: its state by pod, who is connected, its settings; started, stopped, restarted. */
export const ListenerPage = () => {
  const { params } = useRoute();
  const id = params['id'] ?? '';
  const { listeners: words, common } = configuration.value;
  return (
    <One
      {...{ id, path: '/listeners', back: words.back, resource: listeners, every: EVERY_MS }}
      titleOf={({ serverId }) => serverId}
      pills={({ status }) => <ListenerPill status={status} />}
      actions={(row, { ask }) => <Commands row={row} changed={ask} />}
    >
      {(row, { ask }) => (
        <>
          {row.statusReason !== null && (
            <p class={row.status === 'FAILED' ? 'note bad' : 'note warn'}>{row.statusReason}</p>
          )}
          <div class="columns">
            <Card title={common.state}>
              <Facts
                of={[
                  [words.port, portsOf(row)],
                  [words.sessions, `${number(row.activeConnections)} / ${number(row.maxConnections)}`],
                  [words.transfers, number(row.totalTransfers)],
                  [words.refused, number(row.refusedConnections)],
                ]}
              />
            </Card>
            <ByPod of={row.pods} />
          </div>
          <Sessions listener={id} />
          <Card title={common.settings}>
            <ResourceForm
              {...{ resource: 'listener', layout: LISTENER, row, submit: common.save }}
              save={(body) => listeners.change(id, body).then(ask)}
            />
          </Card>
        </>
      )}
    </One>
  );
};
