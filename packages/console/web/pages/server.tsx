import { useRoute } from 'preact-iso';

import { closeCircuit, remoteServers } from '../api/configuration.ts';
import type { RemoteServer } from '../api/configuration.ts';
import { may } from '../api/session.ts';
import { useAction } from '../parts/action.tsx';
import { ConnectionTestCard } from '../parts/connection-test.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { ResourceForm } from '../parts/form.tsx';
import { REMOTE_SERVER } from '../parts/layouts.ts';
import { EnabledSwitch, One, TracePill, TraceSwitch } from '../parts/one.tsx';
import { Card, Facts } from '../parts/page.tsx';
import { ServerPill } from '../parts/server-state.tsx';
import { words as configuration } from '../texts/configuration.ts';
import { colon, fromNow, time } from '../texts/format.ts';

const EVERY_MS = 10_000;

const Circuit = ({ row, changed }: { readonly row: RemoteServer; readonly changed: () => void }) => {
  const { servers: words } = configuration.value;
  const action = useAction();
  const { circuit } = row;
  if (circuit === null || circuit.state === 'CLOSED') return null;
  return (
    <div class="note bad">
      <strong>{words.circuit}</strong>
      {circuit.reason !== null && <span>{circuit.reason}</span>}
      {circuit.nextTry !== null && (
        <span>
          {words.nextTry}
          {colon.value} {time(circuit.nextTry)}
        </span>
      )}
      <FailureNote failure={action.failure} />
      {may('operator') && (
        <span>
          <button
            type="button"
            class="button"
            disabled={action.isRunning}
            onClick={() => action.run(() => closeCircuit(String(row.id)).then(changed))}
          >
            {words.closeCircuit}
          </button>
        </span>
      )}
    </div>
  );
};

/** A remote server: how the last contact went, a test of the connection, its trace, its settings. */
export const ServerPage = () => {
  const { params } = useRoute();
  const id = params['id'] ?? '';
  const { servers: words, common } = configuration.value;
  return (
    <One
      {...{ id, path: '/servers', back: words.back, resource: remoteServers, every: EVERY_MS }}
      titleOf={({ name }) => name}
      pills={(row) => (
        <>
          <ServerPill of={row} />
          <TracePill until={row.traceUntil} />
        </>
      )}
      actions={({ enabled }, { ask }) => (
        <EnabledSwitch
          isEnabled={enabled}
          change={(isEnabled) => remoteServers.change(id, { enabled: isEnabled })}
          changed={ask}
        />
      )}
    >
      {(row, { ask }) => (
        <>
          <Circuit row={row} changed={ask} />
          <div class="columns">
            <div class="stack wide-gap">
              <Card title={common.state} actions={<a href={`/transfers?peer=${id}`}>{common.transfers}</a>}>
                {row.statusReason !== null && <p class="note bad">{row.statusReason}</p>}
                <Facts
                  of={[
                    [words.host, row.tlsEnabled ? `${row.host}:${row.tlsPort ?? 5001} TLS` : `${row.host}:${row.port}`],
                    ['PI 4', row.serverId],
                    ['PI 3', row.clientId],
                    [words.contact, row.lastContact === null ? common.never : fromNow(row.lastContact)],
                  ]}
                />
              </Card>
              <TraceSwitch kind="remoteServer" id={id} until={row.traceUntil} changed={ask} />
            </div>
            {may('operator') && <ConnectionTestCard server={row} tested={ask} />}
          </div>
          <Card title={common.settings}>
            <ResourceForm
              {...{ resource: 'remoteServer', layout: REMOTE_SERVER, row, submit: common.save }}
              save={(body) => remoteServers.change(id, body).then(ask)}
            />
          </Card>
        </>
      )}
    </One>
  );
};
